-- Of rows that a mark has not found, those that it should have. $1 lanes, $2 positions.
SELECT pg_catalog.count(*)
FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, position)
JOIN $schema.outbox_events e ON e.lane = m.lane AND e.position = m.position
WHERE e.status = 'PENDING' AND e.next_retry_at IS NULL
