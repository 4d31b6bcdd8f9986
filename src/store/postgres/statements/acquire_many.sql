-- Many acquires on the same terms, of names that probably have rows: as acquire.sql. The keys are
-- sorted and distinct, so that all batches lock their rows in the same order. What does not
-- depend on the name is computed once, in subqueries.
WITH granted AS (
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
  RETURNING l.key, l.token, l.note_ordinal, l.note_text)
SELECT key, token, note_ordinal, note_text, NULL::bigint AS now_us, NULL::text AS holder
FROM granted
UNION ALL
SELECT b.key, NULL, NULL, NULL, (SELECT :now), baton.shown_lock(b)
FROM unnest(:key[], :grant_id[]) a (key, grant_id)
JOIN baton.lock b ON b.key = a.key
WHERE b.mode = 5 AND b.expires > (SELECT :now) AND b.grant_id <> a.grant_id
  AND b.entombed IS NULL
  AND :schema_version = (SELECT pg_sequence_last_value('baton.schema_version'))
