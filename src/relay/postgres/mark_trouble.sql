-- $1 lanes, $2 positions, $3 status, $4 attempts, $5 delays in ms (-1: infinity, -2: none), $6 why.
UPDATE $schema.outbox_events e
SET status = m.status, retry_count = m.attempts,
    next_retry_at = CASE m.delay WHEN -1 THEN 'infinity'::timestamptz WHEN -2 THEN NULL
                    ELSE pg_catalog.clock_timestamp() + m.delay * interval '1 millisecond' END,
    last_error = CASE m.why WHEN '' THEN e.last_error ELSE m.why END
FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::integer[], $5::bigint[],
                       $6::text[]) AS m (lane, position, status, attempts, delay, why)
WHERE e.lane = m.lane AND e.position = m.position AND e.status = 'PENDING'
