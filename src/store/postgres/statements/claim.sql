-- Claims by waiters that were promoted. The keys are sorted and distinct. Gives a row for each
-- grant that holds its name now; leaves the others alone. While the name is held in X, or nobody
-- else waits, there is nobody to settle.
UPDATE baton.lock l
SET state = 0, since = (SELECT :now),
    expires = (SELECT :now) + greatest(l.ttl, l.at_least_for) * 1000
FROM unnest(:key[], :grant_id[], :schema_version[]) r (key, grant_id, version)
WHERE l.key = r.key AND l.grant_id = r.grant_id
  AND r.version = (SELECT pg_sequence_last_value('baton.schema_version'))
  AND l.expires > (SELECT :now) AND l.state = 1 AND NOT l.revoked
  AND (l.mode = 5 OR NOT l.waiting)
  AND l.if_below IS NULL AND l.set_ordinal IS NULL AND l.set_text IS NULL
RETURNING l.key, l.token, l.note_ordinal, l.note_text
