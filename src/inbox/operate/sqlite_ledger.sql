INSERT INTO $schema.processed_events (consumer, event_id, outcome)
SELECT consumer, event_id, '$outcome' FROM $table
WHERE arrival IN (SELECT value FROM json_each($1))
ON CONFLICT (consumer, event_id) DO UPDATE SET outcome = excluded.outcome,
  processed_at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
