-- $1 lanes, $2 positions.
UPDATE $schema.outbox_events e
SET status = 'SENT', sent_at = pg_catalog.clock_timestamp(), next_retry_at = NULL
FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, position)
WHERE e.lane = m.lane AND e.position = m.position AND e.status = 'PENDING'
