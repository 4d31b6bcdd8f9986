-- The first row of each aggregate in the retry index. $1 now, in ms since 1970; $2 infinity.
WITH heads AS (
  SELECT min(position) AS position FROM main.outbox_events
  WHERE next_retry_at IS NOT NULL GROUP BY aggregate_id
)
SELECT (SELECT token FROM main.outbox_lane WHERE lane = 0), e.position, e.aggregate_id, e.exchange,
       e.routing_key, e.retry_count,
       length(CAST(e.payload AS BLOB)) + length(CAST(e.headers AS BLOB)),
       e.status = 'PENDING', e.next_retry_at = $2, e.next_retry_at <= $1
FROM (SELECT 1) LEFT JOIN heads h LEFT JOIN main.outbox_events e ON e.position = h.position
