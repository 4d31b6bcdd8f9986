-- Of the retry index: FAILED, retrying, held, held behind a FAILED one; ages of the oldest; the
-- error that most of them have.
WITH indexed AS MATERIALIZED (
  SELECT aggregate_id, status, created_at, last_error, next_retry_at = 'infinity' AS held
  FROM $schema.outbox_events WHERE next_retry_at IS NOT NULL),
failed AS (SELECT DISTINCT aggregate_id FROM indexed WHERE status = 'FAILED')
SELECT count(*) FILTER (WHERE status = 'FAILED'),
       count(*) FILTER (WHERE status = 'PENDING' AND NOT held),
       count(*) FILTER (WHERE status = 'PENDING' AND held),
       count(*) FILTER (WHERE status = 'PENDING' AND EXISTS
         (SELECT FROM failed f WHERE f.aggregate_id = i.aggregate_id)),
       floor(extract(epoch FROM clock_timestamp() -
         min(created_at) FILTER (WHERE status = 'FAILED')) * 1000)::bigint,
       floor(extract(epoch FROM clock_timestamp() -
         min(created_at) FILTER (WHERE status = 'PENDING' AND NOT held)) * 1000)::bigint,
       floor(extract(epoch FROM clock_timestamp() -
         min(created_at) FILTER (WHERE status = 'PENDING' AND held)) * 1000)::bigint,
       (SELECT substr(last_error, 1, 200) FROM indexed WHERE last_error IS NOT NULL
        GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1)
FROM indexed i
