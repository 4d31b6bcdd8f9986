-- The next rows of the retry index behind a position, of one aggregate. $1 the token of the lane, $2
-- the aggregate, $3 the position, $4 most rows, $5 infinity.
SELECT position, aggregate_id, exchange, routing_key, retry_count,
       length(CAST(payload AS BLOB)) + length(CAST(headers AS BLOB)),
       status = 'PENDING' AND next_retry_at = $5
FROM main.outbox_events
WHERE next_retry_at IS NOT NULL AND aggregate_id = $2 AND position > $3
  AND (SELECT token FROM main.outbox_lane WHERE lane = 0) = $1
ORDER BY position LIMIT $4
