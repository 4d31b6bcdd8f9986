-- As mark_sent.sql, but looks only into the slots where the rows were when they were read: one index
-- for each row instead of eight. Retention moves rows: those that it does not find, mark_sent.sql
-- does. $1 lanes, $2 positions, $3 slots.
UPDATE $schema.outbox_events e
SET status = 'SENT', sent_at = pg_catalog.clock_timestamp(), next_retry_at = NULL
FROM unnest($1::smallint[], $2::bigint[], $3::smallint[]) AS m (lane, position, slot)
WHERE e.slot = m.slot AND e.lane = m.lane AND e.position = m.position AND e.status = 'PENDING'
