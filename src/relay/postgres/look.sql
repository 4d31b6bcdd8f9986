-- What has become visible since the look before, of all lanes: first pages. Without an order, so
-- that it can stop at the limit; with that many rows or more, the pages are read by page.sql.
-- $1 lanes, $2 their tokens, $3 what the looks before of all of them have shown, $4 most
-- rows, $5 most bytes.
WITH mine AS (
  SELECT l.lane
  FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, token)
  JOIN $schema.outbox_lane l ON l.lane = m.lane AND l.token = m.token
),
this AS MATERIALIZED (
  SELECT pg_catalog.pg_current_snapshot()::text AS now,
         (SELECT pg_catalog.string_agg(lane::text, ',') FROM mine) AS lanes
),
fresh AS (
  (SELECT e.* FROM $schema.outbox_events e
   WHERE e.xid >= pg_catalog.pg_snapshot_xmax($3::pg_snapshot)
     AND e.xid < pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())
     AND e.lane = ANY ($1::smallint[]) AND e.status = 'PENDING' AND e.next_retry_at IS NULL
   UNION ALL
   SELECT e.* FROM $schema.outbox_events e
   WHERE e.xid = ANY (ARRAY(SELECT pg_catalog.pg_snapshot_xip($3::pg_snapshot)))
     AND e.lane = ANY ($1::smallint[]) AND e.status = 'PENDING' AND e.next_retry_at IS NULL)
  LIMIT $4::bigint
),
sized AS (
  SELECT f.*, pg_catalog.octet_length(payload) + pg_catalog.octet_length(headers) AS bytes
  FROM fresh f
)
SELECT this.now, this.lanes, s.lane, s.position, s.xid, s.retry_count, s.bytes,
       (pg_catalog.date_part('epoch', greatest(least(s.created_at, '9999-01-01'), '0001-01-01'))
        * 1000)::bigint,
       s.event_id, s.type, s.aggregate_type, s.aggregate_id, s.exchange, s.routing_key,
       CASE WHEN pg_catalog.sum(s.bytes) OVER (ORDER BY s.lane, s.position) <= $5::bigint
            THEN s.payload END,
       s.headers, s.correlation_id, s.causation_id, s.traceparent, s.version, s.slot
FROM this LEFT JOIN sized s ON true
ORDER BY s.lane, s.position
