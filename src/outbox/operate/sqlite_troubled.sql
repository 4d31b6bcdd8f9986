WITH indexed AS MATERIALIZED (
  SELECT aggregate_id, status, created_at, last_error,
         next_retry_at = 9223372036854775807 AS held,
         CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now
  FROM main.outbox_events WHERE next_retry_at IS NOT NULL),
failed AS (SELECT DISTINCT aggregate_id FROM indexed WHERE status = 'FAILED')
SELECT count(*) FILTER (WHERE status = 'FAILED'),
       count(*) FILTER (WHERE status = 'PENDING' AND NOT held),
       count(*) FILTER (WHERE status = 'PENDING' AND held),
       count(*) FILTER (WHERE status = 'PENDING' AND aggregate_id IN
         (SELECT aggregate_id FROM failed)),
       max(now - created_at) FILTER (WHERE status = 'FAILED'),
       max(now - created_at) FILTER (WHERE status = 'PENDING' AND NOT held),
       max(now - created_at) FILTER (WHERE status = 'PENDING' AND held),
       (SELECT substr(last_error, 1, 200) FROM indexed WHERE last_error IS NOT NULL
        GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1)
FROM indexed
