-- Moves what is not settled from the slot $1 into that of today, $2. A row that somebody else is
-- changing is passed over.
WITH old AS (
  SELECT e.lane, e.position, EXISTS (
    SELECT FROM $table t WHERE t.event_id = e.event_id AND t.slot = $2::smallint) AS is_twin
  FROM $table e WHERE e.slot = $1::smallint AND e.status IN ('PENDING', 'FAILED')
  LIMIT $3::bigint FOR UPDATE OF e SKIP LOCKED),
twins AS (
  UPDATE $table e
  SET status = 'DISCARDED', next_retry_at = NULL,
      last_error = 'the outbox has a newer event with this id'
  FROM old WHERE old.is_twin AND e.slot = $1::smallint AND e.position = old.position
    AND e.lane = old.lane
  RETURNING 1),
moved AS (
  UPDATE $table e SET slot = $2::smallint
  FROM old WHERE NOT old.is_twin AND e.slot = $1::smallint AND e.position = old.position
    AND e.lane = old.lane
  RETURNING 1)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM twins)
