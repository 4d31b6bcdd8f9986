-- The short way for requests with a note: acquires of free names that have a row, and releases that
-- let nobody in. As baton.quick, it answers nothing but granted or done and leaves the rest alone;
-- what it writes is always durable. Who has both sends them one after the other: in one transaction
-- they would not lock their rows in the order of the keys.
--
-- The rows are locked before they are written, so that the note that a grant found is the one that
-- it replaced.
CREATE OR REPLACE FUNCTION baton.quick_noted(
  keys text[], grants uuid[], modes smallint[], ttls bigint[], at_leasts bigint[],
  predicates text[], owners text[], channels text[], metadatas text[], versions bigint[],
  belows bigint[], ordinals bigint[], texts text[],
  free_keys text[], free_grants uuid[], free_ordinals bigint[], free_texts text[], at bigint)
RETURNS TABLE (key text, token bigint, note_ordinal bigint, note_text text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_us  bigint := baton.micros(at);
  current bigint := 0;
BEGIN
  IF cardinality(keys) > 0 THEN
    SELECT l.note_ordinal INTO current FROM baton.lock l WHERE l.key = 'BATON:schema';
    current := coalesce(current, 0);
    RETURN QUERY
      WITH free AS MATERIALIZED (
        SELECT l.key, l.note_ordinal, l.note_text
        FROM unnest(keys, versions, belows) b (key, version, below)
        JOIN baton.lock l ON l.key = b.key
        WHERE b.version = current AND (b.below IS NULL OR l.note_ordinal < b.below)
          AND l.expires <= now_us AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
        ORDER BY l.key FOR NO KEY UPDATE OF l)
      UPDATE baton.lock l
        SET grant_id = a.grant_id, token = nextval('baton.counter'), place = 0, since = now_us,
            expires = now_us + greatest(a.ttl, a.at_least) * 1000, ttl = a.ttl,
            at_least_for = a.at_least, mode = a.mode, state = 0, revoked = false, reason = '',
            predicate = a.predicate, owner = a.owner, channel = a.channel,
            metadata = a.metadata::jsonb, if_below = NULL, set_ordinal = NULL, set_text = NULL,
            note_ordinal = coalesce(a.ordinal, f.note_ordinal),
            note_text = coalesce(a.text, f.note_text)
      FROM unnest(keys, grants, modes, ttls, at_leasts, predicates, owners, channels, metadatas,
                  ordinals, texts)
           a (key, grant_id, mode, ttl, at_least, predicate, owner, channel, metadata, ordinal, text)
      JOIN free f ON f.key = a.key
      WHERE l.key = a.key
      RETURNING l.key, l.token, f.note_ordinal, f.note_text;
  END IF;
  IF cardinality(free_keys) > 0 THEN
    RETURN QUERY
      UPDATE baton.lock l
        SET grant_id = NULL, expires = 0, since = now_us,
            note_ordinal = coalesce(r.ordinal, l.note_ordinal),
            note_text = coalesce(r.text, l.note_text)
      FROM unnest(free_keys, free_grants, free_ordinals, free_texts)
           r (key, grant_id, ordinal, text)
      WHERE l.key = r.key AND l.grant_id = r.grant_id AND l.expires > now_us AND NOT l.waiting
        AND (l.state = 1 OR l.state = 0 AND l.since + l.at_least_for * 1000 <= now_us)
      RETURNING l.key, NULL::bigint, NULL::bigint, NULL::text;
  END IF;
END $$;
