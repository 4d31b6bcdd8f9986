-- What waits. $1 now in ms since 1970, $2 infinity, $3 the limit.
SELECT (SELECT count(*) FROM (
          SELECT 1 FROM main.outbox_events WHERE status = 'PENDING' LIMIT $3)),
       (SELECT count(*) FROM main.outbox_events
        WHERE next_retry_at IS NOT NULL AND next_retry_at = $2 AND status = 'PENDING'),
       (SELECT count(*) FROM main.outbox_events
        WHERE next_retry_at IS NOT NULL AND status = 'FAILED'),
       $1 - (SELECT created_at FROM main.outbox_events
             WHERE status = 'PENDING' ORDER BY position LIMIT 1)
