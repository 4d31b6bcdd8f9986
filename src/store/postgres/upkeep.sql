-- Looking over all names, and forgetting those that remember nothing.

-- Names behind `after` that start with `prefix` and are held, waited for or (idle) have a note;
-- `most` waiters of each. The upper bound is above every text that goes on from the prefix: no key
-- has more than 765 bytes.
CREATE OR REPLACE FUNCTION baton.find(
  prefix text, after text, idle boolean, rows integer, most bigint, at bigint)
RETURNS TABLE (key text, note_ordinal bigint, note_text text, holders text, waiters text,
               waiting bigint, now_us bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_at bigint := baton.micros(at);
BEGIN
  RETURN QUERY
    -- Describing a name costs ten times what finding it does, so it is only done where there is
    -- somebody to describe.
    WITH found AS MATERIALIZED
      (SELECT o.key, o.note_ordinal, o.note_text, o.expires > now_at OR o.crowded OR o.waiting AS busy
       FROM baton.lock o
       WHERE o.key > after AND o.key >= prefix AND o.key <= prefix || repeat(chr(1114111), 192)
         AND (o.expires > now_at OR o.crowded OR o.waiting
              OR idle AND (o.note_ordinal <> 0 OR o.note_text <> ''))
       ORDER BY o.key LIMIT rows)
    SELECT f.key, f.note_ordinal, f.note_text, d.holders, d.waiters, d.waiting, now_at
      FROM found f CROSS JOIN LATERAL baton.described(f.key, now_at, most) d WHERE f.busy
    UNION ALL
    SELECT f.key, f.note_ordinal, f.note_text, NULL, NULL, 0, now_at FROM found f WHERE NOT f.busy
    ORDER BY 1;
END $$;

-- Looks at the next names behind `after` and forgets those that remember nothing and whose last
-- holder came ten minutes ago or more; longer than any statement lives, so no token drawn before
-- can come after. Gives the last key looked at, or '' at the end; null if somebody else is sweeping.
CREATE OR REPLACE FUNCTION baton.sweep(after text, rows integer, at bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := baton.micros(at);
  old_us bigint := now_us - 600000000;
  seen   text[];
  mine   text[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(4702111234474983746) THEN RETURN NULL; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  -- Whoever changed the schema last may have died before it could.
  PERFORM FROM baton.lock l WHERE l.key = 'BATON:schema' FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM baton.tell_version(); END IF;
  SELECT array_agg(o.key ORDER BY o.key) INTO seen
    FROM (SELECT l.key FROM baton.lock l WHERE l.key > after ORDER BY l.key LIMIT rows) o;
  IF seen IS NULL THEN RETURN ''; END IF;
  SELECT array_agg(o.key) INTO mine
    FROM (SELECT l.key FROM baton.lock l
          WHERE l.key = ANY (seen) AND l.since < old_us AND l.expires < old_us
            AND (l.waiting OR l.crowded OR l.grant_id IS NOT NULL
                 OR l.note_ordinal = 0 AND l.note_text = '')
          FOR UPDATE SKIP LOCKED) o;
  DELETE FROM baton.waiter w WHERE w.key = ANY (mine) AND w.stale < old_us;
  DELETE FROM baton.holder h WHERE h.key = ANY (mine) AND h.expires < old_us;
  DELETE FROM baton.lock l
    WHERE l.key = ANY (mine) AND l.note_ordinal = 0 AND l.note_text = ''
      AND (l.entombed IS NULL OR old_us > ALL (l.entombed_until))
      AND NOT EXISTS (SELECT FROM baton.waiter w WHERE w.key = l.key)
      AND NOT EXISTS (SELECT FROM baton.holder h WHERE h.key = l.key);
  UPDATE baton.lock l
    SET grant_id = NULL, expires = 0,
        waiting = EXISTS (SELECT FROM baton.waiter w WHERE w.key = l.key),
        crowded = EXISTS (SELECT FROM baton.holder h WHERE h.key = l.key)
    WHERE l.key = ANY (mine);
  RETURN CASE WHEN cardinality(seen) < rows THEN '' ELSE seen[cardinality(seen)] END;
END $$;

-- Every token from now on is above `floor`. The lock that ALTER SEQUENCE takes keeps others from
-- drawing meanwhile. For the owner of the schema.
CREATE OR REPLACE FUNCTION baton.raise_tokens(floor_token bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  ALTER SEQUENCE baton.counter CACHE 1;
  SELECT c.last_value INTO last FROM baton.counter c;
  IF floor_token >= last THEN
    EXECUTE format('ALTER SEQUENCE baton.counter RESTART WITH %s', floor_token + 1);
  END IF;
  RETURN greatest(floor_token, last);
END $$;
