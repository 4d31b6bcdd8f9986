SELECT status, substr(coalesce(last_error, ''), 1, 200), count(*),
       CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - min(created_at),
       sum(count(*)) OVER (), max(max($position)) OVER (), $consumer
FROM $table
WHERE $filter AND $eligible
GROUP BY 1, 2, 7 ORDER BY 3 DESC, 1, 2, 7 LIMIT $8
