SELECT $position, status, retry_count,
       CASE WHEN next_retry_at = 'infinity' THEN 9223372036854775807
            ELSE floor(extract(epoch FROM next_retry_at) * 1000)::bigint END,
       last_error,
       floor(extract(epoch FROM created_at) * 1000)::bigint,
       floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
       $settled, $consumer,
       $event
FROM $table
WHERE $filter AND $position > $8::bigint
ORDER BY $position LIMIT $9::bigint
