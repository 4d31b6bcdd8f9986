-- Claims of what was handed over, without a function around them. The keys come sorted and stand
-- once. Gives a row for each that is held now; the others are left as they were.
UPDATE baton.lock l
SET state = 0,
    since = (SELECT coalesce($4, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)),
    expires = (SELECT coalesce($4, (date_part('epoch', clock_timestamp()) * 1000000)::bigint))
              + greatest(l.ttl, l.at_least_for) * 1000
FROM unnest($1, $2, $3) r (key, grant_id, version)
WHERE l.key = r.key AND l.grant_id = r.grant_id
  AND r.version = (SELECT pg_sequence_last_value('baton.schema_version'))
  AND l.expires > (SELECT coalesce($4, (date_part('epoch', clock_timestamp()) * 1000000)::bigint))
  AND l.state = 1 AND NOT l.revoked AND (l.mode = 5 OR NOT l.waiting)
  AND l.if_below IS NULL AND l.set_ordinal IS NULL AND l.set_text IS NULL
RETURNING l.key, l.token, l.note_ordinal, l.note_text
