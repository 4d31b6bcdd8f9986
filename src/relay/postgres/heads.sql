-- The heads of the retry indexes: of each aggregate the row with the lowest position. One that an
-- operator is just changing is not due, but still the head. $1 lanes, $2 their tokens.
WITH mine AS (
  SELECT l.lane
  FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, token)
  JOIN $schema.outbox_lane l ON l.lane = m.lane AND l.token = m.token
),
heads AS (
  SELECT DISTINCT ON (e.lane, e.aggregate_id)
         e.lane, e.position, e.xid, e.aggregate_id, e.exchange, e.routing_key, e.retry_count,
         pg_catalog.octet_length(e.payload) + pg_catalog.octet_length(e.headers) AS bytes,
         e.status = 'PENDING' AS pending, e.next_retry_at = 'infinity' AS held,
         e.next_retry_at <= pg_catalog.clock_timestamp() AS come
  FROM $schema.outbox_events e
  WHERE e.lane = ANY ($1::smallint[]) AND e.next_retry_at IS NOT NULL
  ORDER BY e.lane, e.aggregate_id, e.position
),
free AS (
  SELECT e.lane, e.position
  FROM heads h JOIN $schema.outbox_events e ON e.lane = h.lane AND e.position = h.position
  WHERE h.pending AND (h.held OR h.come)
    AND e.status = 'PENDING' AND e.next_retry_at IS NOT NULL
  FOR UPDATE OF e SKIP LOCKED
)
SELECT mine.lane, h.position, h.xid::text, h.aggregate_id, h.exchange, h.routing_key,
       h.retry_count, h.bytes, h.pending AND f.position IS NOT NULL, h.held, h.come
FROM mine
LEFT JOIN heads h ON h.lane = mine.lane
LEFT JOIN free f ON f.lane = h.lane AND f.position = h.position
