-- One acquire of a name whose row this session was the last to have, on the same terms: it says them
-- still, so that few columns are written. The token tells: it is given once, and whatever else
-- changes the terms draws another one, but for those that are compared here. So are those that a
-- renewal or a release goes by, and whose row it was, in case that tokens came back with a restored
-- table. Gives no row, and has written nothing, if there is anything else to it.
UPDATE baton.lock l
SET grant_id = $2, token = nextval('baton.counter'),
    since = coalesce($9, (date_part('epoch', clock_timestamp()) * 1000000)::bigint),
    expires = coalesce($9, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
              + greatest($5, $6) * 1000
WHERE l.key = $1 AND l.token = $3 AND l.grant_id IS NULL AND l.mode = $4 AND l.ttl = $5
  AND l.at_least_for = $6 AND l.channel = $7 AND l.state = 0
  AND NOT l.revoked AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
  AND $8 = pg_sequence_last_value('baton.schema_version')
RETURNING l.token, l.note_ordinal, l.note_text
