SELECT $position, status, retry_count, next_retry_at, last_error, created_at,
       CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
       $settled, $consumer,
       $event
FROM $table
WHERE $filter AND $position > $8
ORDER BY $position LIMIT $9
