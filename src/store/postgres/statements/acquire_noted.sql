-- Acquires that read or write a note, of names that have rows: grants those that are free, or
-- tells who holds them in X, as acquire.sql. The keys are sorted and distinct.
--
-- The rows are locked before they are written, so that the reply has the note that was replaced.
WITH free AS MATERIALIZED (
  SELECT l.key, l.note_ordinal, l.note_text
  FROM unnest(:key[], :if_ordinal_below[], :schema_version[]) a (key, below, version)
  JOIN baton.lock l ON l.key = a.key
  WHERE a.version = (SELECT pg_sequence_last_value('baton.schema_version'))
    AND (a.below IS NULL OR l.note_ordinal < a.below)
    AND l.expires <= (SELECT :now) AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
  ORDER BY l.key FOR NO KEY UPDATE OF l),
granted AS (
  UPDATE baton.lock l
  SET grant_id = a.grant_id, token = nextval('baton.counter'), place = 0, since = n.now_us,
      expires = n.now_us + greatest(a.ttl, a.at_least_for) * 1000, ttl = a.ttl,
      at_least_for = a.at_least_for, mode = a.mode, state = 0, revoked = false, reason = '',
      predicate = a.predicate, owner = a.owner, channel = a.channel,
      metadata = a.metadata::jsonb, if_below = NULL, set_ordinal = NULL, set_text = NULL,
      note_ordinal = coalesce(a.ordinal, f.note_ordinal),
      note_text = coalesce(a.text, f.note_text)
  FROM (SELECT :now AS now_us) n,
       unnest(:key[], :grant_id[], :mode[], :ttl[], :at_least_for[], :predicate[], :owner[],
              :channel[], :metadata[], :note_ordinal[], :note_text[])
         a (key, grant_id, mode, ttl, at_least_for, predicate, owner, channel, metadata, ordinal,
            text)
  JOIN free f ON f.key = a.key
  WHERE l.key = a.key
  RETURNING l.key, l.token, f.note_ordinal, f.note_text)
SELECT key, token, note_ordinal, note_text, NULL::bigint AS now_us, NULL::text AS holder
FROM granted
UNION ALL
SELECT b.key, NULL, NULL, NULL, (SELECT :now), baton.shown_lock(b)
FROM unnest(:key[], :grant_id[], :if_ordinal_below[], :schema_version[])
       a (key, grant_id, below, version)
JOIN baton.lock b ON b.key = a.key
WHERE b.mode = 5 AND b.expires > (SELECT :now) AND b.grant_id <> a.grant_id
  AND b.entombed IS NULL AND (a.below IS NULL OR b.note_ordinal < a.below)
  AND a.version = (SELECT pg_sequence_last_value('baton.schema_version'))
