-- What acquire_known.sql does, for many names at once: acquires that are alike but for name and
-- grant, as those of one process mostly are. The keys come sorted and stand once. Gives a row for
-- each name that was let go; the others are left as they were. What does not depend on the name is
-- asked for once.
UPDATE baton.lock l
SET grant_id = a.grant_id, token = nextval('baton.counter'), place = 0,
    since = (SELECT coalesce($11, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)),
    expires = (SELECT coalesce($11, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
                      + greatest($4, $5) * 1000),
    ttl = $4, at_least_for = $5, mode = $3, state = 0, revoked = false, reason = '',
    predicate = $7, owner = $8, channel = $9, metadata = (SELECT $10::jsonb), if_below = NULL,
    set_ordinal = NULL, set_text = NULL
FROM unnest($1, $2) a (key, grant_id)
WHERE l.key = a.key AND l.grant_id IS NULL AND NOT l.crowded AND NOT l.waiting
  AND l.entombed IS NULL
  AND $6 = (SELECT pg_sequence_last_value('baton.schema_version'))
RETURNING l.key, l.token, l.note_ordinal, l.note_text
