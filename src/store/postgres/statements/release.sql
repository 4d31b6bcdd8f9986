-- A lone release of a name that nobody waits for. A crash may lose it, since the lock expires
-- anyway: it does not wait for the disk. No RETURNING, which would add about 10%: the command tag
-- tells whether it released.
UPDATE baton.lock l
SET grant_id = NULL, expires = 0
WHERE l.key = :key AND l.grant_id = :grant_id AND l.state = 0 AND NOT l.waiting
  AND (l.at_least_for = 0 OR l.since + l.at_least_for * 1000 <= :now)
  AND l.expires > :now
  AND set_config('synchronous_commit', 'off', true) IS NOT NULL
