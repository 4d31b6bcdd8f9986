-- Pages of looks that were begun. Of each lane: $1 its number, $2 its token, $3 the snapshot of the
-- look before, $4 that of this one, $5 the last position of the page before. $6 most rows of each,
-- $7 most bytes of a row that comes with its body. In no order: a sum or a sort of rows as wide as
-- these costs a fifth of the statement.
WITH mine AS MATERIALIZED (
  SELECT m.lane, m.known::pg_snapshot AS known, m.now::pg_snapshot AS now, m.behind
  FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])
       AS m (lane, token, known, now, behind)
  JOIN $schema.outbox_lane l ON l.lane = m.lane AND l.token = m.token
),
found AS (
  SELECT m.lane AS mine, p.*,
         pg_catalog.octet_length(p.payload) + pg_catalog.octet_length(p.headers) AS bytes
  FROM mine m LEFT JOIN LATERAL (
    SELECT e.* FROM $schema.outbox_events e
    WHERE e.lane = m.lane AND e.position > m.behind
      AND e.status = 'PENDING' AND e.next_retry_at IS NULL
      AND pg_catalog.pg_visible_in_snapshot(e.xid, m.now)
      AND NOT pg_catalog.pg_visible_in_snapshot(e.xid, m.known)
    ORDER BY e.position LIMIT $6::bigint) p ON true
)
SELECT f.mine, f.position, f.xid, f.retry_count, f.bytes,
       (pg_catalog.date_part('epoch', greatest(least(f.created_at, '9999-01-01'), '0001-01-01'))
        * 1000)::bigint,
       f.event_id, f.type, f.aggregate_type, f.aggregate_id, f.exchange, f.routing_key,
       CASE WHEN f.bytes <= $7::bigint THEN f.payload END,
       f.headers, f.correlation_id, f.causation_id, f.traceparent, f.version, f.slot
FROM found f
