-- Releases that let nobody in, without a function around them. The keys come sorted and stand once.
-- Gives a row for each grant that has ended; the others are left as they were. It need not wait for
-- the disk.
UPDATE baton.lock l
SET grant_id = NULL, expires = 0
FROM unnest($1, $2) r (key, grant_id)
WHERE l.key = r.key AND l.grant_id = r.grant_id AND NOT l.waiting
  AND (l.state = 1
       OR l.state = 0
          AND l.since + l.at_least_for * 1000
              <= (SELECT coalesce($3, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)))
  AND l.expires > (SELECT coalesce($3, (date_part('epoch', clock_timestamp()) * 1000000)::bigint))
RETURNING l.key, NULL::bigint, (SELECT set_config('synchronous_commit', 'off', true))
