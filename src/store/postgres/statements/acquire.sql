-- A lone acquire of a name that was free when it was last seen: grants it if it was released. Any
-- other case (no row, a holder, a queue) gives no row and writes nothing. An UPDATE that had to wait
-- for the row judges its new version, and draws its token then.
UPDATE baton.lock l
SET grant_id = :grant_id, token = nextval('baton.counter'), place = 0, since = :now,
    expires = :now + greatest(:ttl, :at_least_for) * 1000, ttl = :ttl,
    at_least_for = :at_least_for, mode = :mode, state = 0, revoked = false, reason = '',
    predicate = :predicate, owner = :owner, channel = :channel, metadata = :metadata::jsonb,
    if_below = NULL, set_ordinal = NULL, set_text = NULL
WHERE l.key = :key AND l.grant_id IS NULL AND NOT l.crowded AND NOT l.waiting
  AND l.entombed IS NULL
  AND :schema_version = pg_sequence_last_value('baton.schema_version')
RETURNING l.key, l.token, l.note_ordinal, l.note_text
