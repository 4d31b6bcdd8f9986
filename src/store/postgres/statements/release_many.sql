-- Releases of names that nobody waits for. The keys are sorted and distinct. Gives a row for each
-- grant that it released; leaves the others alone. Does not wait for the disk, as release.sql.
UPDATE baton.lock l
SET grant_id = NULL, expires = 0
FROM unnest(:key[], :grant_id[]) r (key, grant_id)
WHERE l.key = r.key AND l.grant_id = r.grant_id AND NOT l.waiting
  AND (l.state = 1 OR l.state = 0 AND l.since + l.at_least_for * 1000 <= (SELECT :now))
  AND l.expires > (SELECT :now)
RETURNING l.key, NULL::bigint, (SELECT set_config('synchronous_commit', 'off', true))
