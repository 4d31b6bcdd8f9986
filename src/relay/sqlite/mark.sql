-- $1 position, $2 status, $3 attempts, $4 next_retry_at, $5 why, $6 sent_at.
UPDATE main.outbox_events
SET status = $2, retry_count = $3, next_retry_at = $4, last_error = coalesce($5, last_error),
    sent_at = $6
WHERE position = $1 AND status = 'PENDING'
