-- A lone acquire of a name that nothing is known of: as acquire.sql, but it also creates the row,
-- takes a row whose holder has expired, and tells who holds the name in X. Any other case (a shared
-- mode, a queue) gives no row and writes nothing. It costs the server about a half more.
--
-- Both halves see one snapshot, and a row cannot be in both: the first takes rows without a holder,
-- the second shows rows with one. A busy name costs no row lock, no transaction id and no WAL.
--
-- A token that was drawn before waiting for the row could be lower than that of the holder it
-- waited for, so the UPDATE draws another one.
WITH granted AS (
  INSERT INTO baton.lock AS l (key, grant_id, token, place, since, expires, ttl, at_least_for,
                               mode, predicate, owner, channel, metadata)
  SELECT :key, :grant_id, nextval('baton.counter'), 0, n.now_us,
         n.now_us + greatest(:ttl, :at_least_for) * 1000, :ttl, :at_least_for, :mode, :predicate,
         :owner, :channel, :metadata::jsonb
  FROM (SELECT :now AS now_us) n
  WHERE :schema_version = pg_sequence_last_value('baton.schema_version')
    AND NOT EXISTS (
      SELECT FROM baton.lock b WHERE b.key = :key
        AND (b.expires > n.now_us OR b.crowded OR b.waiting OR b.entombed IS NOT NULL))
  ON CONFLICT (key) DO UPDATE
    SET grant_id = excluded.grant_id, token = nextval('baton.counter'), place = 0,
        since = excluded.since, expires = excluded.expires, ttl = excluded.ttl,
        at_least_for = excluded.at_least_for, mode = excluded.mode, state = 0, revoked = false,
        reason = '', predicate = excluded.predicate, owner = excluded.owner,
        channel = excluded.channel, metadata = excluded.metadata, if_below = NULL,
        set_ordinal = NULL, set_text = NULL
    WHERE l.expires <= excluded.since AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
  RETURNING l.key, l.token, l.note_ordinal, l.note_text)
SELECT key, token, note_ordinal, note_text, NULL::bigint AS now_us, NULL::text AS holder
FROM granted
UNION ALL
SELECT b.key, NULL, NULL, NULL, :now, baton.shown_lock(b)
FROM baton.lock b
WHERE b.key = :key AND b.mode = 5 AND b.expires > :now AND b.grant_id <> :grant_id
  AND b.entombed IS NULL
  AND :schema_version = pg_sequence_last_value('baton.schema_version')
