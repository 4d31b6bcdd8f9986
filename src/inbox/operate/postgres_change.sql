-- Changes rows of inbox_events and, in the same step, what the ledger says of them. A row that a
-- consumer works on right now is passed over.
WITH chosen AS (
  SELECT arrival FROM $table
  WHERE $filter AND $eligible AND arrival > $8::bigint AND arrival <= $9::bigint
  ORDER BY arrival LIMIT $10::bigint
  FOR UPDATE SKIP LOCKED),
changed AS (
  UPDATE $table e SET $change FROM chosen c WHERE e.arrival = c.arrival
  RETURNING e.arrival, e.consumer, e.event_id),
ledger AS (
  INSERT INTO $schema.processed_events (consumer, event_id, outcome)
  SELECT consumer, event_id, '$outcome' FROM changed
  ON CONFLICT (consumer, event_id)
    DO UPDATE SET outcome = excluded.outcome, processed_at = clock_timestamp())
SELECT arrival FROM changed
