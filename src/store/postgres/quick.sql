-- Short ways for what is asked most: one name, nobody in the way, no note to write. Each settles
-- what the row of the name alone can decide and leaves the rest alone; nothing here answers
-- anything but granted or done.

-- Acquires of free names, with a row or without. The keys come sorted and stand once, and the rows are
-- locked in that order, as everywhere. A busy name is not locked or written at all. A row that was
-- waited for is judged again, and the token drawn again, or it could be lower than that of a holder
-- waited for.
CREATE OR REPLACE FUNCTION baton.quick(
  keys text[], grants uuid[], modes smallint[], ttls bigint[], at_leasts bigint[],
  predicates text[], owners text[], channels text[], metadatas text[], versions bigint[],
  at bigint)
RETURNS TABLE (key text, token bigint, note_ordinal bigint, note_text text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_us  bigint := baton.micros(at);
  current bigint;
BEGIN
  SELECT l.note_ordinal INTO current FROM baton.lock l WHERE l.key = 'BATON:schema';
  current := coalesce(current, 0);
  RETURN QUERY
    INSERT INTO baton.lock AS l (key, grant_id, token, place, since, expires, ttl, at_least_for,
                                 mode, predicate, owner, channel, metadata)
    SELECT a.key, a.grant_id, nextval('baton.counter'), 0, now_us,
           now_us + greatest(a.ttl, a.at_least) * 1000, a.ttl, a.at_least, a.mode, a.predicate,
           a.owner, a.channel, a.metadata::jsonb
    FROM unnest(keys, grants, modes, ttls, at_leasts, predicates, owners, channels, metadatas,
                versions)
         a (key, grant_id, mode, ttl, at_least, predicate, owner, channel, metadata, version)
    WHERE a.version = current
      AND NOT EXISTS (
        SELECT FROM baton.lock b WHERE b.key = a.key
          AND (b.expires > now_us OR b.crowded OR b.waiting OR b.entombed IS NOT NULL))
    ON CONFLICT ON CONSTRAINT lock_pkey DO UPDATE
      SET grant_id = excluded.grant_id, token = nextval('baton.counter'), place = 0,
          since = excluded.since, expires = excluded.expires, ttl = excluded.ttl,
          at_least_for = excluded.at_least_for, mode = excluded.mode, state = 0, revoked = false,
          reason = '', predicate = excluded.predicate, owner = excluded.owner,
          channel = excluded.channel, metadata = excluded.metadata, if_below = NULL,
          set_ordinal = NULL, set_text = NULL
      WHERE l.expires <= now_us AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
    RETURNING l.key, l.token, l.note_ordinal, l.note_text;
  IF NOT FOUND THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
END $$;

-- Renewals, in the order of the keys. Fails as a whole if a row is locked for longer than a moment:
-- one of them must not hold up a thousand. Then renew_unlocked is the way.
CREATE OR REPLACE FUNCTION baton.quick_renew(keys text[], grants uuid[], at bigint)
RETURNS TABLE (key text, token bigint, note_ordinal bigint, note_text text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_us bigint := baton.micros(at);
BEGIN
  PERFORM set_config('lock_timeout', '50', true);
  RETURN QUERY
    UPDATE baton.lock l SET expires = greatest(l.expires, now_us + l.ttl * 1000)
    FROM unnest(keys, grants) r (key, grant_id)
    WHERE l.key = r.key AND l.grant_id = r.grant_id AND l.expires > now_us AND l.state = 0
      AND NOT l.revoked
    RETURNING l.key, l.token, l.note_ordinal, l.note_text;
END $$;

-- The same for the rows that nobody else has locked; passes over the others. Costs a quarter more.
CREATE OR REPLACE FUNCTION baton.renew_unlocked(keys text[], grants uuid[], at bigint)
RETURNS TABLE (key text, token bigint, note_ordinal bigint, note_text text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_us bigint := baton.micros(at);
BEGIN
  RETURN QUERY
    UPDATE baton.lock l SET expires = greatest(l.expires, now_us + l.ttl * 1000)
    FROM (SELECT o.ctid AS free
          FROM unnest(keys, grants) r (key, grant_id)
          JOIN baton.lock o ON o.key = r.key AND o.grant_id = r.grant_id
          WHERE o.expires > now_us AND o.state = 0 AND NOT o.revoked
          FOR NO KEY UPDATE OF o SKIP LOCKED) f
    WHERE l.ctid = f.free
    RETURNING l.key, l.token, l.note_ordinal, l.note_text;
END $$;

-- One acquire by itself, in as few statements as there can be; all other cases go the long way in
-- the same call.
CREATE OR REPLACE FUNCTION baton.acquire_one(
  k text, g uuid, m smallint, new_ttl bigint, ticket bigint, handoff bigint, at_least bigint,
  version bigint, new_predicate text, new_owner text, new_channel text, new_metadata text,
  at bigint)
RETURNS SETOF baton.reply LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := baton.micros(at);
  until  bigint := now_us + greatest(new_ttl, at_least) * 1000;
  reply  baton.reply;
  t      bigint;
BEGIN
  UPDATE baton.lock l
    SET grant_id = g, token = nextval('baton.counter'), place = 0,
        since = now_us, expires = until, ttl = new_ttl, at_least_for = at_least, mode = m,
        state = 0, revoked = false, reason = '', predicate = new_predicate, owner = new_owner,
        channel = new_channel, metadata = new_metadata::jsonb, if_below = NULL,
        set_ordinal = NULL, set_text = NULL
    WHERE l.key = k AND l.expires <= now_us AND NOT l.crowded AND NOT l.waiting
      AND l.entombed IS NULL
      AND version = coalesce((SELECT s.note_ordinal FROM baton.lock s
                              WHERE s.key = 'BATON:schema'), 0)
    RETURNING l.token, l.note_ordinal, l.note_text INTO t, reply.note_ordinal, reply.note_text;
  IF NOT FOUND THEN
    INSERT INTO baton.lock AS l (key, grant_id, token, place, since, expires, ttl, at_least_for,
                                 mode, predicate, owner, channel, metadata)
      SELECT k, g, nextval('baton.counter'), 0, now_us, until, new_ttl,
             at_least, m, new_predicate, new_owner, new_channel, new_metadata::jsonb
      WHERE NOT EXISTS (SELECT FROM baton.lock b WHERE b.key = k)
        AND version = coalesce((SELECT s.note_ordinal FROM baton.lock s
                                WHERE s.key = 'BATON:schema'), 0)
      ON CONFLICT (key) DO NOTHING
      RETURNING l.token, l.note_ordinal, l.note_text INTO t, reply.note_ordinal, reply.note_text;
  END IF;
  IF NOT FOUND THEN
    RETURN QUERY SELECT * FROM baton.apply_all(ARRAY[ROW(
      1, 0, g, ARRAY[k], ARRAY[m], new_ttl, ticket, handoff, at_least, 0, NULL, NULL, NULL,
      version, new_predicate, new_owner, new_channel, new_metadata::jsonb, '', '',
      false)::baton.request], at);
    RETURN;
  END IF;
  reply.ord := 1;
  reply.outcome := 0;
  reply.tokens := ARRAY[t];
  reply.now_us := now_us;
  RETURN NEXT reply;
END $$;

CREATE OR REPLACE FUNCTION baton.release_one(k text, g uuid, at bigint)
RETURNS SETOF baton.reply LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := baton.micros(at);
  reply  baton.reply;
BEGIN
  UPDATE baton.lock l SET grant_id = NULL, expires = 0, since = now_us
    WHERE l.key = k AND l.grant_id = g AND l.expires > now_us AND NOT l.waiting
      AND (l.state = 1 OR l.state = 0 AND l.since + l.at_least_for * 1000 <= now_us);
  IF NOT FOUND THEN
    RETURN QUERY SELECT * FROM baton.apply_all(ARRAY[ROW(
      1, 4, g, ARRAY[k], ARRAY[5], 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '', '', '', NULL, '',
      '', false)::baton.request], at);
    RETURN;
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  reply.ord := 1;
  reply.outcome := 7;
  reply.now_us := now_us;
  RETURN NEXT reply;
END $$;

-- Who was promoted comes for it: while it is there in X, there is nobody else to look after.
CREATE OR REPLACE FUNCTION baton.claim_one(
  k text, g uuid, m smallint, ticket bigint, version bigint, at bigint)
RETURNS SETOF baton.reply LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := baton.micros(at);
  reply  baton.reply;
  t      bigint;
BEGIN
  UPDATE baton.lock l
    SET state = 0, since = now_us, expires = now_us + greatest(l.ttl, l.at_least_for) * 1000
    WHERE l.key = k AND l.grant_id = g AND l.expires > now_us AND l.state = 1 AND NOT l.revoked
      AND (l.mode = 5 OR NOT l.waiting) AND l.if_below IS NULL AND l.set_ordinal IS NULL
      AND l.set_text IS NULL
      AND version = coalesce((SELECT s.note_ordinal FROM baton.lock s
                              WHERE s.key = 'BATON:schema'), 0)
    RETURNING l.token, l.note_ordinal, l.note_text INTO t, reply.note_ordinal, reply.note_text;
  IF NOT FOUND THEN
    RETURN QUERY SELECT * FROM baton.apply_all(ARRAY[ROW(
      1, 1, g, ARRAY[k], ARRAY[m], 0, ticket, 0, 0, 0, NULL, NULL, NULL, version, '', '', '',
      NULL, '', '', false)::baton.request], at);
    RETURN;
  END IF;
  reply.ord := 1;
  reply.outcome := 0;
  reply.tokens := ARRAY[t];
  reply.now_us := now_us;
  RETURN NEXT reply;
END $$;
