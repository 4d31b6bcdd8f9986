-- Many acquires on the same terms, of names that were free when last seen: as acquire.sql. The keys
-- are sorted and distinct, so that all batches lock their rows in the same order. What does not
-- depend on the name is computed once, in subqueries.
UPDATE baton.lock l
SET grant_id = a.grant_id, token = nextval('baton.counter'), place = 0, since = (SELECT :now),
    expires = (SELECT :now + greatest(:ttl, :at_least_for) * 1000), ttl = :ttl,
    at_least_for = :at_least_for, mode = :mode, state = 0, revoked = false, reason = '',
    predicate = :predicate, owner = :owner, channel = :channel,
    metadata = (SELECT :metadata::jsonb), if_below = NULL, set_ordinal = NULL, set_text = NULL
FROM unnest(:key[], :grant_id[]) a (key, grant_id)
WHERE l.key = a.key AND l.grant_id IS NULL AND NOT l.crowded AND NOT l.waiting
  AND l.entombed IS NULL
  AND :schema_version = (SELECT pg_sequence_last_value('baton.schema_version'))
RETURNING l.key, l.token, l.note_ordinal, l.note_text
