-- New rows in the order of their positions, which is that of their commits. $1 the last position of
-- the look before, $2 the last one of this look (-1: that of now), $3 most rows, $4 most bytes.
WITH this AS (
  SELECT (SELECT token FROM main.outbox_lane WHERE lane = 0) AS token,
         iif($2 >= 0, $2, (SELECT coalesce(max(position), 0) FROM main.outbox_events)) AS last
),
found AS (
  SELECT e.*, length(CAST(e.payload AS BLOB)) + length(CAST(e.headers AS BLOB)) AS bytes
  FROM main.outbox_events e
  WHERE e.status = 'PENDING' AND e.next_retry_at IS NULL
    AND e.position > $1 AND e.position <= (SELECT last FROM this)
  ORDER BY e.position LIMIT $3
)
SELECT this.token, this.last, 0, f.position, f.position, f.retry_count, f.bytes, f.created_at,
       f.event_id, f.type, f.aggregate_type, f.aggregate_id, f.exchange, f.routing_key,
       iif(sum(f.bytes) OVER (ORDER BY f.position) <= $4, f.payload, NULL),
       f.headers, f.correlation_id, f.causation_id, f.traceparent, f.version
FROM this LEFT JOIN found f
ORDER BY f.position
