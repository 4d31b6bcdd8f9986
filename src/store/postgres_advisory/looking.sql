-- What one sees of all sessions' locks, and what an operator does to them.

-- Every advisory lock of this database with a key of 64 bits, held or waited for.
CREATE OR REPLACE VIEW baton_advisory.session_lock AS
  SELECT (l.classid::bigint << 32) | l.objid::bigint AS lock_key, l.pid, l.granted,
         (CASE l.mode WHEN 'ShareLock' THEN 2 ELSE 5 END)::smallint AS mode, l.waitstart
  FROM pg_locks l
  WHERE l.locktype = 'advisory' AND l.objsubid = 1
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());

-- Names as they are now. `fixed` is the key for all names but Baton's own, if there is one.
-- holders: whose session has the lock, and whose time is not over although it has not; with a null
-- token those that are not Baton's.
CREATE OR REPLACE FUNCTION baton_advisory.look(keys text[], fixed bigint, at bigint)
RETURNS TABLE (key text, lock_key bigint, ordinal bigint, note text, holders text, waiters text,
               version bigint, now_us bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_at bigint := baton_advisory.micros(at);
  run    baton_advisory.server := baton_advisory.this_server(at);
  schema_version bigint := coalesce((SELECT n.ordinal FROM baton_advisory.note n
                                     WHERE n.key = 'BATON:schema'), 0);
BEGIN
  RETURN QUERY
    WITH asked AS MATERIALIZED (
      SELECT k AS key, i, CASE WHEN fixed IS NULL OR k LIKE 'BATON:%'
                               THEN baton_advisory.lock_key(k) ELSE fixed END AS lock_key
      FROM unnest(keys) WITH ORDINALITY AS u (k, i)),
    locks AS MATERIALIZED (
      SELECT l.* FROM baton_advisory.session_lock l
      WHERE l.lock_key IN (SELECT a.lock_key FROM asked a)),
    terms AS MATERIALIZED (
      SELECT t.*, l.pid IS NOT NULL AS alive,
             greatest(t.keep_until,
                      CASE WHEN t.server <> run.id AND NOT t.released
                           THEN run.began + t.ttl * 1000 END) AS waited_for
      FROM baton_advisory.term t
      LEFT JOIN locks l ON l.lock_key = t.lock_key AND l.pid = t.pid AND l.granted
      WHERE t.lock_key IN (SELECT a.lock_key FROM asked a)),
    held AS (
      SELECT t.lock_key, t.grant_id, t.mode, t.token, t.pid, t.predicate, t.owner, t.metadata,
             t.ttl, t.since, t.released, t.revoked, t.reason,
             CASE WHEN NOT t.alive THEN t.waited_for
                  WHEN at IS NOT NULL THEN now_at + t.ttl * 1000
                  ELSE greatest(now_at + 1000, coalesce((
                    SELECT (date_part('epoch', s.state_change) * 1000000)::bigint
                    FROM pg_stat_get_activity(t.pid) s), now_at) + t.ttl * 1000) END AS ends
      FROM terms t WHERE t.alive OR t.waited_for > now_at
      UNION ALL
      SELECT l.lock_key, w.grant_id, l.mode, NULL, l.pid, coalesce(w.predicate, ''),
             coalesce(w.owner, 'a session of its own (pid ' || l.pid || ')'), NULL,
             0, coalesce(w.since, now_at), false, false, '', now_at + 1000000
      FROM locks l LEFT JOIN baton_advisory.waiter w ON w.pid = l.pid AND w.lock_key = l.lock_key
      WHERE l.granted AND NOT EXISTS (
        SELECT FROM terms t WHERE t.lock_key = l.lock_key AND t.pid = l.pid)),
    waiting AS (
      SELECT l.lock_key, w.grant_id, l.mode, l.pid, coalesce(w.predicate, '') AS predicate,
             coalesce(w.owner, 'a session of its own (pid ' || l.pid || ')') AS owner, l.waitstart
      FROM locks l LEFT JOIN baton_advisory.waiter w ON w.pid = l.pid AND w.lock_key = l.lock_key
      WHERE NOT l.granted)
    SELECT a.key, a.lock_key, coalesce(n.ordinal, 0), coalesce(n.text, ''),
           (SELECT json_agg(to_json(h)) FROM held h WHERE h.lock_key = a.lock_key)::text,
           (SELECT json_agg(to_json(w) ORDER BY w.waitstart NULLS LAST) FROM waiting w
            WHERE w.lock_key = a.lock_key)::text,
           schema_version, now_at
    FROM asked a LEFT JOIN baton_advisory.note n ON n.key = a.key
    ORDER BY a.i;
END $$;

-- Names behind `after` that start with `prefix` and may be held, waited for or (idle) have a note.
CREATE OR REPLACE FUNCTION baton_advisory.names(
  prefix text, after text, idle boolean, most integer)
RETURNS TABLE (key text) LANGUAGE sql STABLE AS $$
  SELECT k.key FROM (
    (SELECT t.key FROM baton_advisory.term t
     WHERE t.key > after AND t.key >= prefix AND t.key <= prefix || repeat(chr(1114111), 192)
     GROUP BY t.key ORDER BY t.key LIMIT most)
    UNION
    (SELECT w.key FROM baton_advisory.waiter w
     WHERE w.key > after AND w.key >= prefix AND w.key <= prefix || repeat(chr(1114111), 192)
     GROUP BY w.key ORDER BY w.key LIMIT most)
    UNION
    (SELECT n.key FROM baton_advisory.note n
     WHERE idle AND (n.ordinal <> 0 OR n.text <> '') AND n.key > after AND n.key >= prefix
       AND n.key <= prefix || repeat(chr(1114111), 192)
     ORDER BY n.key LIMIT most)) k
  ORDER BY k.key COLLATE "C" LIMIT most
$$;

-- Revokes these grants of a lock: their holders hear of it at once if they listen, else at their
-- next heartbeat.
CREATE OR REPLACE FUNCTION baton_advisory.revoke(p_lock bigint, p_grants uuid[], p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton_advisory.term t SET revoked = true, reason = p_reason
    WHERE t.lock_key = p_lock AND t.grant_id = ANY (p_grants);
  PERFORM pg_notify('baton_advisory', g::text) FROM unnest(p_grants) g;
END $$;

-- Ends the sessions of others that have the lock, and forgets these grants.
CREATE OR REPLACE FUNCTION baton_advisory.tear_away(p_lock bigint, p_grants uuid[], p_pids integer[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_terminate_backend(l.pid, 1000) FROM baton_advisory.session_lock l
    WHERE l.lock_key = p_lock AND l.granted AND l.pid = ANY (p_pids) AND l.pid <> pg_backend_pid();
  DELETE FROM baton_advisory.term t WHERE t.lock_key = p_lock AND t.grant_id = ANY (p_grants);
END $$;

-- Forgets terms that nobody needs any more; for a quiet moment.
CREATE OR REPLACE FUNCTION baton_advisory.sweep() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := baton_advisory.micros(NULL);
  run    baton_advisory.server := baton_advisory.this_server(NULL);
  gone   bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM baton_advisory.term t
    WHERE t.keep_until < now_us AND (t.server = run.id OR run.began + t.ttl * 1000 < now_us)
      AND t.since < now_us - 600000000
      AND NOT EXISTS (SELECT FROM baton_advisory.session_lock l
                      WHERE l.lock_key = t.lock_key AND l.pid = t.pid);
  GET DIAGNOSTICS gone = ROW_COUNT;
  DELETE FROM baton_advisory.waiter w
    WHERE w.since < now_us - 600000000
      AND NOT EXISTS (SELECT FROM baton_advisory.session_lock l WHERE l.pid = w.pid);
  RETURN gone;
END $$;

-- Every token from now on is above `floor`. For the owner of the schema.
CREATE OR REPLACE FUNCTION baton_advisory.raise_tokens(floor_token bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  ALTER SEQUENCE baton_advisory.counter CACHE 1;
  SELECT c.last_value INTO last FROM baton_advisory.counter c;
  IF floor_token >= last THEN
    EXECUTE format('ALTER SEQUENCE baton_advisory.counter RESTART WITH %s', floor_token + 1);
  END IF;
  RETURN greatest(floor_token, last);
END $$;
