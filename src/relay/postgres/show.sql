-- That the lanes are read, and what waits there, counted up to a limit. $1 lanes, $2 their tokens,
-- $3 the limit.
WITH mine AS (
  UPDATE $schema.outbox_lane l SET updated_at = pg_catalog.clock_timestamp()
  FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, token)
  WHERE l.lane = m.lane AND l.token = m.token
  RETURNING l.lane, coalesce(l.seen, '1:1:'::pg_snapshot) AS seen
),
fresh AS (
  SELECT e.created_at FROM mine m JOIN $schema.outbox_events e
    ON e.lane = m.lane AND e.xid >= pg_catalog.pg_snapshot_xmin(m.seen)
  WHERE e.status = 'PENDING' AND e.next_retry_at IS NULL
    AND NOT pg_catalog.pg_visible_in_snapshot(e.xid, m.seen)
  LIMIT $3::bigint
),
indexed AS (
  SELECT e.created_at, e.status, e.next_retry_at FROM $schema.outbox_events e
  WHERE e.lane = ANY ($1::smallint[]) AND e.next_retry_at IS NOT NULL
  LIMIT $3::bigint
),
pending AS (
  SELECT created_at FROM fresh UNION ALL SELECT created_at FROM indexed WHERE status = 'PENDING'
)
SELECT (SELECT pg_catalog.count(*) FROM pending),
       (SELECT pg_catalog.count(*) FROM indexed
        WHERE status = 'PENDING' AND next_retry_at = 'infinity'),
       (SELECT pg_catalog.count(*) FROM indexed WHERE status = 'FAILED'),
       (SELECT (extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.min(created_at))
                * 1000)::bigint FROM pending)
