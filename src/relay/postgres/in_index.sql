-- The aggregates that have rows in the retry index. $1 lane.
SELECT DISTINCT aggregate_id FROM $schema.outbox_events
WHERE lane = $1::smallint AND next_retry_at IS NOT NULL
