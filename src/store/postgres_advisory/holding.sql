-- What a session does for its grant. The session has, or gets, the advisory lock; these functions
-- write down what that means. They run with the rights of their caller.

-- Volatile, as what it calls, so that it is inlined: else its SQL is parsed at every call.
CREATE OR REPLACE FUNCTION baton_advisory.micros(at bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(at, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
$$;

-- The 64 bits that stand for a name: the first of its SHA-256, with a prefix that keeps them apart
-- from the keys of others.
CREATE OR REPLACE FUNCTION baton_advisory.lock_key(key text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT ('x' || encode(substr(sha256(convert_to('baton:' || key, 'UTF8')), 1, 8), 'hex'))
         ::bit(64)::bigint
$$;

-- This run of the server. A clean restart leaves the row with another start; a crash leaves none,
-- also one after which the postmaster goes on, as when a backend was killed.
CREATE OR REPLACE FUNCTION baton_advisory.this_server(at bigint) RETURNS baton_advisory.server
LANGUAGE plpgsql AS $$
DECLARE
  found_one baton_advisory.server;
  start     timestamptz := pg_postmaster_start_time();
BEGIN
  SELECT * INTO found_one FROM baton_advisory.server;
  IF found_one.started = start THEN RETURN found_one; END IF;
  INSERT INTO baton_advisory.server AS s (id, started, began)
    VALUES (gen_random_uuid(), start,
            CASE WHEN found_one.one AND at IS NULL THEN date_part('epoch', start) * 1000000
                 ELSE baton_advisory.micros(at) END)
    ON CONFLICT (one) DO UPDATE SET id = excluded.id, started = excluded.started,
                                    began = excluded.began
    WHERE s.started <> excluded.started;
  SELECT * INTO found_one FROM baton_advisory.server;
  RETURN found_one;
END $$;

-- Takes the lock if it is free (or has it already: handed) and writes the term.
-- outcome: 0 taken, 1 not free, 2 free but somebody's time is not over (ends), 3 superseded, 4 not
-- this schema version. With 1 to 4 nothing is written; a lock that was not handed is let go.
CREATE OR REPLACE FUNCTION baton_advisory.take(
  p_lock bigint, p_key text, p_grant uuid, p_mode smallint, p_version bigint, p_ttl bigint,
  p_at_least_for bigint, p_if_below bigint, p_set_ordinal bigint, p_set_text text,
  p_predicate text, p_owner text, p_metadata text, p_handed boolean, p_idle bigint, p_at bigint,
  OUT outcome smallint, OUT token bigint, OUT ordinal bigint, OUT note text, OUT ends bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_us  bigint := baton_advisory.micros(p_at);
  run     baton_advisory.server;
  version bigint;
  terms   bigint;
BEGIN
  IF NOT p_handed AND NOT (CASE p_mode WHEN 2 THEN pg_try_advisory_lock_shared(p_lock)
                                       ELSE pg_try_advisory_lock(p_lock) END) THEN
    outcome := 1;
    RETURN;
  END IF;
  -- As few statements as can be: each costs more than what it reads.
  SELECT v.ordinal, coalesce(n.ordinal, 0), coalesce(n.text, ''), s.id, s.began
    INTO version, ordinal, note, run.id, run.began
    FROM (SELECT) one
    LEFT JOIN baton_advisory.server s ON s.started = pg_postmaster_start_time()
    LEFT JOIN baton_advisory.note v ON v.key = 'BATON:schema'
    LEFT JOIN baton_advisory.note n ON n.key = p_key;
  IF run.id IS NULL THEN run := baton_advisory.this_server(p_at); END IF;
  -- A grant that was released does not come back.
  SELECT count(*),
         max(greatest(t.keep_until, CASE WHEN t.server <> run.id AND NOT t.released
                                         THEN run.began + t.ttl * 1000 END))
           FILTER (WHERE NOT (t.mode = 2 AND p_mode = 2)
                     AND NOT (t.key = p_key AND t.grant_id = p_grant AND NOT t.released))
    INTO terms, ends
    FROM baton_advisory.term t WHERE t.lock_key = p_lock;
  outcome := CASE WHEN p_version <> coalesce(version, 0) THEN 4
                  WHEN NOT p_handed AND ordinal >= p_if_below THEN 3
                  WHEN ends > now_us THEN 2
                  ELSE 0 END;
  PERFORM set_config('idle_session_timeout', p_idle::text, false);
  IF outcome <> 0 THEN
    IF NOT p_handed THEN PERFORM pg_advisory_unlock_all(); END IF;  -- it has no other
    RETURN;
  END IF;
  -- An exclusive holder is alone; a shared holder knows that no exclusive one is left.
  IF terms > 0 THEN
    DELETE FROM baton_advisory.term t
      WHERE t.lock_key = p_lock AND (p_mode = 5 OR t.mode = 5 OR t.pid = pg_backend_pid()
                                     OR (t.key = p_key AND t.grant_id = p_grant));
  END IF;
  IF p_handed THEN
    DELETE FROM baton_advisory.waiter w WHERE w.pid = pg_backend_pid();
  END IF;
  token := nextval('baton_advisory.counter');
  INSERT INTO baton_advisory.term
      (lock_key, key, grant_id, mode, token, pid, server, ttl, at_least_for, since, keep_until,
       predicate, owner, metadata)
    VALUES (p_lock, p_key, p_grant, p_mode, token, pg_backend_pid(), run.id, p_ttl, p_at_least_for,
            now_us, CASE WHEN p_handed THEN 0 ELSE baton_advisory.kept(now_us, p_at_least_for) END,
            p_predicate, p_owner, p_metadata::jsonb);
  IF NOT p_handed AND (p_set_ordinal IS NOT NULL OR p_set_text IS NOT NULL) THEN
    PERFORM baton_advisory.set_note(p_key, p_set_ordinal, p_set_text);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION baton_advisory.kept(since bigint, at_least_for bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN at_least_for > 0 THEN since + at_least_for * 1000 ELSE 0 END
$$;

CREATE OR REPLACE FUNCTION baton_advisory.set_note(p_key text, p_ordinal bigint, p_text text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_ordinal IS NULL AND p_text IS NULL THEN RETURN; END IF;
  INSERT INTO baton_advisory.note AS n VALUES (p_key, coalesce(p_ordinal, 0), coalesce(p_text, ''))
    ON CONFLICT (key) DO UPDATE
      SET ordinal = coalesce(p_ordinal, n.ordinal), text = coalesce(p_text, n.text);
END $$;

-- A waiter that has the lock comes for it. outcome: 0 held, 3 superseded, 4 not this schema
-- version, 5 its row has gone, 6 revoked (note says why).
CREATE OR REPLACE FUNCTION baton_advisory.claim(
  p_lock bigint, p_key text, p_grant uuid, p_version bigint, p_if_below bigint,
  p_set_ordinal bigint, p_set_text text, p_idle bigint, p_at bigint,
  OUT outcome smallint, OUT ordinal bigint, OUT note text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_us  bigint := baton_advisory.micros(p_at);
  term    baton_advisory.term;
  version bigint;
BEGIN
  SELECT n.ordinal INTO version FROM baton_advisory.note n WHERE n.key = 'BATON:schema';
  SELECT n.ordinal, n.text INTO ordinal, note FROM baton_advisory.note n WHERE n.key = p_key;
  ordinal := coalesce(ordinal, 0);
  note := coalesce(note, '');
  SELECT * INTO term FROM baton_advisory.term t
    WHERE t.lock_key = p_lock AND t.key = p_key AND t.grant_id = p_grant;
  outcome := CASE WHEN p_version <> coalesce(version, 0) THEN 4
                  WHEN term.token IS NULL THEN 5
                  WHEN term.revoked THEN 6
                  WHEN ordinal >= p_if_below THEN 3
                  ELSE 0 END;
  IF outcome = 6 THEN note := term.reason; END IF;
  IF outcome <> 0 THEN RETURN; END IF;
  PERFORM set_config('idle_session_timeout', p_idle::text, false);
  IF term.at_least_for > 0 THEN
    UPDATE baton_advisory.term t
      SET since = now_us, keep_until = baton_advisory.kept(now_us, t.at_least_for)
      WHERE t.lock_key = p_lock AND t.key = p_key AND t.grant_id = p_grant;
  END IF;
  PERFORM baton_advisory.set_note(p_key, p_set_ordinal, p_set_text);
END $$;

-- The heartbeat. Writes nothing but a note that is to change; gives the note from before. No row:
-- the term has gone.
CREATE OR REPLACE FUNCTION baton_advisory.beat(
  p_lock bigint, p_key text, p_grant uuid, p_set_ordinal bigint, p_set_text text)
RETURNS TABLE (revoked boolean, reason text, ordinal bigint, note text, pid integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT t.revoked, t.reason, coalesce(n.ordinal, 0), coalesce(n.text, ''), pg_backend_pid()
    FROM baton_advisory.term t LEFT JOIN baton_advisory.note n ON n.key = t.key
    WHERE t.lock_key = p_lock AND t.key = p_key AND t.grant_id = p_grant;
  IF FOUND AND (p_set_ordinal IS NOT NULL OR p_set_text IS NOT NULL) AND NOT EXISTS (
      SELECT FROM baton_advisory.term t
      WHERE t.lock_key = p_lock AND t.key = p_key AND t.grant_id = p_grant AND t.revoked) THEN
    PERFORM baton_advisory.set_note(p_key, p_set_ordinal, p_set_text);
  END IF;
END $$;

-- Ends a grant. The lock is let go only when what was written is committed: nobody who has it next
-- may see less. A procedure, because a function cannot commit.
CREATE OR REPLACE PROCEDURE baton_advisory.finish(
  p_lock bigint, p_key text, p_grant uuid, p_set_ordinal bigint, p_set_text text,
  p_park boolean, p_idle bigint)
LANGUAGE plpgsql AS $$
BEGIN
  IF p_set_ordinal IS NOT NULL OR p_set_text IS NOT NULL THEN
    PERFORM baton_advisory.set_note(p_key, p_set_ordinal, p_set_text);
  END IF;
  IF p_park THEN
    UPDATE baton_advisory.term t SET released = true, pid = 0
      WHERE t.lock_key = p_lock AND t.key = p_key AND t.grant_id = p_grant;
  ELSE
    DELETE FROM baton_advisory.term t
      WHERE t.lock_key = p_lock AND t.key = p_key AND t.grant_id = p_grant;
  END IF;
  PERFORM set_config('idle_session_timeout', p_idle::text, false),
          CASE WHEN p_set_ordinal IS NULL AND p_set_text IS NULL
               THEN set_config('synchronous_commit', 'off', true) END;
  COMMIT;
  PERFORM pg_advisory_unlock_all();
END $$;

-- Before a session waits. What sessions that died waiting have left is tidied on the way.
CREATE OR REPLACE FUNCTION baton_advisory.enqueue(
  p_lock bigint, p_key text, p_grant uuid, p_mode smallint, p_predicate text, p_owner text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := baton_advisory.micros(NULL);
BEGIN
  DELETE FROM baton_advisory.waiter w
    WHERE w.key = p_key AND w.since < now_us - 60000000 AND w.pid <> pg_backend_pid()
      AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.pid = w.pid);
  INSERT INTO baton_advisory.waiter
    VALUES (pg_backend_pid(), p_lock, p_key, p_grant, p_mode, p_predicate, p_owner, now_us)
    ON CONFLICT (pid) DO UPDATE
      SET lock_key = excluded.lock_key, key = excluded.key, grant_id = excluded.grant_id,
          mode = excluded.mode, predicate = excluded.predicate, owner = excluded.owner,
          since = excluded.since;
END $$;
