-- $1: of one consumer, or NULL. The last column: for how long the most overdue retry has been due.
SELECT consumer, status, count(*),
       floor(extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::bigint,
       (floor(extract(epoch FROM clock_timestamp() -
         min(next_retry_at) FILTER (WHERE status = 'RETRY')) * 1000))::bigint
FROM $table WHERE $1::text IS NULL OR consumer = $1::text
GROUP BY consumer, status ORDER BY consumer, status
