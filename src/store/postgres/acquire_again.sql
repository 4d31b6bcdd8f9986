-- One acquire of a name that this session held last and let go, on the same terms: its row has them
-- still, so that few columns are written. The token says so: it is given once, and whatever else
-- changes the terms draws another one, but for those that are compared here. Gives no row, and has
-- written nothing, if there is anything else to it.
UPDATE baton.lock l
SET grant_id = $2, token = nextval('baton.counter'),
    since = coalesce($7, (date_part('epoch', clock_timestamp()) * 1000000)::bigint),
    expires = coalesce($7, (date_part('epoch', clock_timestamp()) * 1000000)::bigint) + $4
WHERE l.key = $1 AND l.token = $3 AND l.grant_id IS NULL AND l.mode = $5 AND l.state = 0
  AND NOT l.revoked AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
  AND $6 = pg_sequence_last_value('baton.schema_version')
RETURNING l.token, l.note_ordinal, l.note_text
