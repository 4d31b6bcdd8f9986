-- Maintenance: deleting rows that nobody needs, raising the token counter.

-- Looks at the next names behind `after` and deletes those that have no note and whose last
-- holder came ten minutes ago or more. That is longer than any statement can run, so a token that
-- was drawn before cannot be written after. Returns the last key it looked at, '' at the end,
-- null if another session is sweeping.
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
  -- The client that changed the schema last may have died before it could do this.
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

-- Every token from now on is above `floor_token`. ALTER SEQUENCE takes a lock that keeps others
-- from drawing tokens meanwhile. For the owner of the schema.
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
