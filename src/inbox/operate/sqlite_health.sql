SELECT consumer, status, count(*),
       CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - min(created_at),
       CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) -
         min(next_retry_at) FILTER (WHERE status = 'RETRY')
FROM $table WHERE $1 IS NULL OR consumer = $1
GROUP BY consumer, status ORDER BY consumer, status
