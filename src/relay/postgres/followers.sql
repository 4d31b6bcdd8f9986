-- The next rows of the retry index behind a position, of some aggregates. $1 lane, $2 its token, $3
-- aggregates, $4 the position, $5 most rows.
SELECT e.position, e.xid::text, e.aggregate_id, e.exchange, e.routing_key, e.retry_count,
       pg_catalog.octet_length(e.payload) + pg_catalog.octet_length(e.headers),
       e.status = 'PENDING' AND e.next_retry_at = 'infinity'
FROM $schema.outbox_lane l
JOIN $schema.outbox_events e ON e.lane = l.lane
WHERE l.lane = $1::smallint AND l.token = $2::bigint AND e.next_retry_at IS NOT NULL
  AND e.aggregate_id = ANY ($3::text[]) AND e.position > $4::bigint
ORDER BY e.position LIMIT $5::bigint
