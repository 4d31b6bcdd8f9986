-- Where the locks are in the same database: after fence_check.sql, with the same parameters. A row:
-- the lock has been granted to somebody newer who has not written yet; roll back. No row: go on.
-- Expired and unclaimed grants count: a higher token was drawn after ours had ended.
SELECT 1
FROM baton_lock, json_each(baton_lock.doc, '$.holders') AS holder
WHERE baton_lock.key = ?1
  AND holder.value ->> '$.token' > ?3
  AND holder.value ->> '$.mode' IN (
    SELECT other.value FROM json_each(CASE ?2
      WHEN 'IS' THEN '["X"]'
      WHEN 'IX' THEN '["S", "U", "SIX", "X"]'
      WHEN 'S' THEN '["IX", "SIX", "X"]'
      WHEN 'U' THEN '["IX", "U", "SIX", "X"]'
      WHEN 'SIX' THEN '["IX", "S", "U", "SIX", "X"]'
      ELSE '["IS", "IX", "S", "U", "SIX", "X"]'
    END) AS other)
LIMIT 1;
