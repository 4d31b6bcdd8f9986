-- Where the locks are in the same database: after fence_check.sql, with the same parameter. A row:
-- a lock has been granted to somebody newer who has not written yet; roll back. No row: go on.
-- Expired and unclaimed grants count: a higher token was drawn after ours had ended.
SELECT 1
FROM json_each(?1) AS ask
JOIN baton_lock ON baton_lock.key = ask.value ->> 'name'
JOIN json_each(baton_lock.doc, '$.holders') AS holder
WHERE holder.value ->> '$.token' > CAST(ask.value ->> 'token' AS INTEGER)
  AND holder.value ->> '$.mode' IN (
    SELECT other.value FROM json_each(CASE ask.value ->> 'mode'
      WHEN 'IS' THEN '["X"]'
      WHEN 'IX' THEN '["S", "U", "SIX", "X"]'
      WHEN 'S' THEN '["IX", "SIX", "X"]'
      WHEN 'U' THEN '["IX", "U", "SIX", "X"]'
      WHEN 'SIX' THEN '["IX", "S", "U", "SIX", "X"]'
      ELSE '["IS", "IX", "S", "U", "SIX", "X"]'
    END) AS other)
LIMIT 1;
