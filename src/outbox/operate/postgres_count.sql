SELECT status, substr(coalesce(last_error, ''), 1, 200), count(*),
       floor(extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::bigint,
       (sum(count(*)) OVER ())::bigint, max(max($position)) OVER (), $consumer
FROM $table
WHERE $filter AND $eligible
GROUP BY 1, 2, 7 ORDER BY 3 DESC, 1, 2, 7 LIMIT $8::bigint
