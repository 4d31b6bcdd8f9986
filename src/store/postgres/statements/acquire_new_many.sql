-- Many acquires on any terms, of names with or without rows: as acquire_new.sql. The keys are
-- sorted and distinct, so that all batches lock their rows in the same order.
WITH granted AS (
  INSERT INTO baton.lock AS l (key, grant_id, token, place, since, expires, ttl, at_least_for,
                               mode, predicate, owner, channel, metadata)
  SELECT a.key, a.grant_id, nextval('baton.counter'), 0, n.now_us,
         n.now_us + greatest(a.ttl, a.at_least_for) * 1000, a.ttl, a.at_least_for, a.mode,
         a.predicate, a.owner, a.channel, a.metadata::jsonb
  FROM (SELECT :now AS now_us) n,
       unnest(:key[], :grant_id[], :mode[], :ttl[], :at_least_for[], :predicate[], :owner[],
              :channel[], :metadata[], :schema_version[])
         a (key, grant_id, mode, ttl, at_least_for, predicate, owner, channel, metadata, version)
  WHERE a.version = (SELECT pg_sequence_last_value('baton.schema_version'))
    AND NOT EXISTS (
      SELECT FROM baton.lock b WHERE b.key = a.key
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
SELECT b.key, NULL, NULL, NULL, (SELECT :now), baton.shown_lock(b)
FROM unnest(:key[], :grant_id[], :schema_version[]) a (key, grant_id, version)
JOIN baton.lock b ON b.key = a.key
WHERE b.mode = 5 AND b.expires > (SELECT :now) AND b.grant_id <> a.grant_id
  AND b.entombed IS NULL
  AND a.version = (SELECT pg_sequence_last_value('baton.schema_version'))
