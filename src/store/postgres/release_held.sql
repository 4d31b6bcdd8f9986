-- One release that lets nobody in, without a function around it. It need not wait for the disk.
UPDATE baton.lock l SET grant_id = NULL, expires = 0, since = n.now_us
FROM (SELECT coalesce($3, (date_part('epoch', clock_timestamp()) * 1000000)::bigint) AS now_us) n
WHERE l.key = $1 AND l.grant_id = $2 AND l.expires > n.now_us AND NOT l.waiting
  AND (l.state = 1 OR l.state = 0 AND l.since + l.at_least_for * 1000 <= n.now_us)
RETURNING l.key, NULL::bigint, set_config('synchronous_commit', 'off', true)
