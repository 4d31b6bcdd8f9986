-- A lone acquire of a name that probably has a row: grants it if it was released, or tells who
-- holds it in X. Any other case (no row, an expired holder, a shared mode, a queue) gives no row
-- and writes nothing. A busy name costs no row lock, no transaction id and no WAL.
--
-- Both halves see one snapshot, and a row cannot be in both: the UPDATE takes rows without a
-- holder, the SELECT shows rows with one. An UPDATE that had to wait for the row judges the new
-- version, and draws its token then.
WITH granted AS (
  UPDATE baton.lock l
  SET grant_id = :grant_id, token = nextval('baton.counter'), place = 0, since = :now,
      expires = :now + greatest(:ttl, :at_least_for) * 1000, ttl = :ttl,
      at_least_for = :at_least_for, mode = :mode, state = 0, revoked = false, reason = '',
      predicate = :predicate, owner = :owner, channel = :channel, metadata = :metadata::jsonb,
      if_below = NULL, set_ordinal = NULL, set_text = NULL
  WHERE l.key = :key AND l.grant_id IS NULL AND NOT l.crowded AND NOT l.waiting
    AND l.entombed IS NULL
    AND :schema_version = pg_sequence_last_value('baton.schema_version')
  RETURNING l.key, l.token, l.note_ordinal, l.note_text)
SELECT key, token, note_ordinal, note_text, NULL::bigint AS now_us, NULL::text AS holder
FROM granted
UNION ALL
SELECT b.key, NULL, NULL, NULL, :now, baton.shown_lock(b)
FROM baton.lock b
WHERE b.key = :key AND b.mode = 5 AND b.expires > :now AND b.grant_id <> :grant_id
  AND b.entombed IS NULL
  AND :schema_version = pg_sequence_last_value('baton.schema_version')
