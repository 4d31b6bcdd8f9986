-- As mark_sent.sql, but looks only into the slot where the rows were when they were read: one table
-- with its index instead of eight. The slot is no array, so that it is chosen once and not for each
-- row. Retention moves rows: those that it does not find, mark_sent.sql does.
-- $1 lanes, $2 positions, $3 slot.
UPDATE $schema.outbox_events e
SET status = 'SENT', sent_at = pg_catalog.clock_timestamp(), next_retry_at = NULL
FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, position)
WHERE e.slot = $3::smallint AND e.lane = m.lane AND e.position = m.position
  AND e.status = 'PENDING'
