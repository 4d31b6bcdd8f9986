-- One acquire of a name that was let go and has a row, as most have that were used before: an update
-- costs the server half of acquire_free.sql, the less the fewer functions it names. Gives no row,
-- and has written nothing, if there is anything else to it, such as a holder that expired. The row
-- is judged and the token drawn anew if it had to be waited for.
UPDATE baton.lock l
SET grant_id = $2, token = nextval('baton.counter'), place = 0,
    since = coalesce($11, (date_part('epoch', clock_timestamp()) * 1000000)::bigint),
    expires = coalesce($11, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
              + greatest($4, $5) * 1000,
    ttl = $4, at_least_for = $5, mode = $3, state = 0, revoked = false, reason = '',
    predicate = $7, owner = $8, channel = $9, metadata = $10::jsonb, if_below = NULL,
    set_ordinal = NULL, set_text = NULL
WHERE l.key = $1 AND l.grant_id IS NULL AND NOT l.crowded AND NOT l.waiting
  AND l.entombed IS NULL
  AND $6 = pg_sequence_last_value('baton.schema_version')
RETURNING l.token, l.note_ordinal, l.note_text
