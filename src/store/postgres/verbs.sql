-- What acquire.cc, hold.cc and end.cc of src/core do, a function a verb. Each answers a request at
-- now_us. Unlocked, it only looks, and gives an outcome of null as soon as it would have to change
-- something; locked, the rows of all names of the request exist and are locked.
--
-- Outcomes: 0 granted, 1 queued, 2 busy, 3 superseded, 4 denied, 5 deadlock, 6 lost, 7 done.

-- Whatever is asked of one name is asked with that key as a parameter, in PL/pgSQL: so its plan is
-- made once a session, and is always by key.

CREATE OR REPLACE FUNCTION baton.say(new_outcome smallint, words text, must_last boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  reply.outcome := new_outcome;
  reply.message := words;
  reply.durable := must_last;
  RETURN reply;
END $$;

-- The reply that means: ask again with the locks.
CREATE OR REPLACE FUNCTION baton.needs_locks() RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  RETURN reply;
END $$;

CREATE OR REPLACE FUNCTION baton.shown(h baton.holding) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_array(h.grant_id, h.mode, h.token, h.state, h.since, h.expires, h.ttl,
                          h.revoked, h.reason, h.predicate, h.owner, h.metadata)
$$;

-- Which holders are in the way of a grant in these modes: the first 8 of them, and when the first
-- one ends. Null if there is none.
CREATE OR REPLACE FUNCTION baton.holders_in_the_way(
  ks text[], modes smallint[], g uuid, now_us bigint, OUT ends bigint, OUT holders text)
LANGUAGE plpgsql AS $$
DECLARE
  listed integer := 0;
  part   text;
  more   bigint;
  these  integer;
BEGIN
  FOR i IN 1 .. cardinality(ks) LOOP
    SELECT min(b.expires), count(*), string_agg(b.shown::text, ', ' ORDER BY b.place)
      INTO more, these, part
      FROM (SELECT h.expires, h.place, baton.shown(h) AS shown FROM baton.holding h
            WHERE h.key = ks[i] AND h.expires > now_us AND h.grant_id <> g
              AND baton.clashes(modes[i], h.mode)
            ORDER BY h.place LIMIT 8 - listed) b;
    IF listed + these >= 8 THEN
      SELECT min(h.expires) INTO more FROM baton.holding h
        WHERE h.key = ks[i] AND h.expires > now_us AND h.grant_id <> g
          AND baton.clashes(modes[i], h.mode);
    END IF;
    ends := least(ends, more);
    listed := listed + these;
    holders := nullif(concat_ws(', ', holders, part), '');
  END LOOP;
  holders := '[' || holders || ']';
END $$;

-- When the first waiter goes stale that is ahead of the grant and in its way.
CREATE OR REPLACE FUNCTION baton.waiters_in_the_way(
  ks text[], modes smallint[], g uuid, now_us bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  ends  bigint;
  first bigint;
  own   bigint;
BEGIN
  FOR i IN 1 .. cardinality(ks) LOOP
    SELECT greatest(w.turn, 0) INTO own FROM baton.waiter w
      WHERE w.key = ks[i] AND w.grant_id = g AND w.class = 1 AND w.stale > now_us;
    SELECT min(w.stale) INTO first FROM baton.waiter w
      WHERE w.key = ks[i] AND w.stale > now_us AND w.grant_id <> g
        AND baton.clashes(modes[i], w.mode)
        AND CASE w.class
          WHEN 1 THEN greatest(w.turn, 0) < coalesce(own, 9223372036854775807)
          ELSE EXISTS (SELECT FROM baton.holding h WHERE h.key = ks[i]
                       AND h.grant_id = w.grant_id AND h.expires > now_us) END;
    ends := least(ends, first);
  END LOOP;
  RETURN ends;
END $$;

CREATE OR REPLACE FUNCTION baton.obstacle(r baton.request, now_us bigint) RETURNS baton.reply
LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  SELECT o.ends, o.holders INTO reply.ends, reply.holders
    FROM baton.holders_in_the_way(r.keys, r.modes, r.grant_id, now_us) o;
  IF reply.ends IS NULL THEN
    reply.ends := baton.waiters_in_the_way(r.keys, r.modes, r.grant_id, now_us);
  END IF;
  RETURN reply;
END $$;

-- Why the grant may not go on, or null: it must be there on every name, not parked, not revoked.
CREATE OR REPLACE FUNCTION baton.not_holding(ks text[], g uuid, now_us bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  k text;
  h record;
BEGIN
  FOREACH k IN ARRAY ks LOOP
    SELECT o.state, o.revoked, o.reason INTO h FROM baton.holding o
      WHERE o.key = k AND o.grant_id = g AND o.expires > now_us;
    IF NOT FOUND OR h.state = 2 THEN RETURN 'the grant has ended'; END IF;
    IF h.revoked THEN RETURN 'revoked: ' || h.reason; END IF;
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION baton.tokens_of(ks text[], g uuid, now_us bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
  tokens bigint[];
  t      bigint;
BEGIN
  FOR i IN 1 .. cardinality(ks) LOOP
    SELECT o.token INTO t FROM baton.holding o
      WHERE o.key = ks[i] AND o.grant_id = g AND o.expires > now_us;
    tokens[i] := t;
  END LOOP;
  RETURN tokens;
END $$;

-- Granted, with the note as it is before this request changes it.
CREATE OR REPLACE FUNCTION baton.granted(k text) RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  SELECT l.note_ordinal, l.note_text INTO reply.note_ordinal, reply.note_text
    FROM baton.lock l WHERE l.key = k;
  reply.outcome := 0;
  reply.durable := true;
  RETURN reply;
END $$;

-- Makes the sequence say what the note of BATON:schema says. Runs with the rights of its owner, so
-- that a role which may not set the sequence can let it say what is true and nothing else: the row
-- is locked, so nobody changes the note meanwhile, and a note that this transaction may have written
-- itself, and may yet take back, is left for the next one.
CREATE OR REPLACE FUNCTION baton.tell_version() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  version   bigint;
  committed boolean;
BEGIN
  SELECT l.note_ordinal, age(l.xmin) > age(pg_current_xact_id()::xid) INTO version, committed
    FROM baton.lock l WHERE l.key = 'BATON:schema' FOR NO KEY UPDATE;
  IF committed AND version >= 0
     AND version IS DISTINCT FROM pg_sequence_last_value('baton.schema_version') THEN
    PERFORM setval('baton.schema_version', version);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION baton.write_note(k text, new_ordinal bigint, new_text text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF new_ordinal IS NULL AND new_text IS NULL THEN RETURN; END IF;
  -- Not called yet, the sequence has no value, and everybody asks for the note.
  IF k = 'BATON:schema' AND new_ordinal IS NOT NULL THEN
    PERFORM setval('baton.schema_version', 0, false);
  END IF;
  UPDATE baton.lock l SET note_ordinal = coalesce(new_ordinal, l.note_ordinal),
                          note_text = coalesce(new_text, l.note_text)
    WHERE l.key = k;
END $$;

-- Every name of the request for `h`, who says all but key, mode and token.
CREATE OR REPLACE FUNCTION baton.take(r baton.request, h baton.holder, now_us bigint)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  reply  baton.reply := baton.granted(r.keys[1]);
  change baton.holder := h;
BEGIN
  h.state := 0;
  h.since := now_us;
  h.expires := now_us + greatest(h.ttl, h.at_least_for) * 1000;
  h.revoked := false;
  h.reason := '';
  h.if_below := NULL;
  h.set_ordinal := NULL;
  h.set_text := NULL;
  FOR i IN 1 .. cardinality(r.keys) LOOP
    PERFORM baton.drop_waiter(r.keys[i], h.grant_id, NULL);
    h.key := r.keys[i];
    h.mode := r.modes[i];
    h.token := nextval('baton.counter');
    h.place := h.token;
    reply.tokens[i] := h.token;
    PERFORM baton.put(h, now_us);
  END LOOP;
  PERFORM baton.write_note(r.keys[1], change.set_ordinal, change.set_text);
  UPDATE baton.lock l SET entombed = NULL, entombed_until = NULL
    WHERE l.key = r.keys[1] AND l.entombed IS NOT NULL AND now_us >= ALL (l.entombed_until);
  RETURN reply;
END $$;

-- The grant is there: its time starts again.
CREATE OR REPLACE FUNCTION baton.take_again(r baton.request, now_us bigint) RETURNS baton.reply
LANGUAGE plpgsql AS $$
DECLARE
  why   text := baton.not_holding(r.keys, r.grant_id, now_us);
  reply baton.reply;
  h     baton.holder;
BEGIN
  IF why IS NOT NULL THEN RETURN baton.say(6::smallint, why, false); END IF;
  reply := baton.granted(r.keys[1]);
  SELECT * INTO h FROM baton.holding o
    WHERE o.key = r.keys[1] AND o.grant_id = r.grant_id AND o.expires > now_us;
  IF h.state = 1 THEN
    IF reply.note_ordinal >= h.if_below THEN
      PERFORM baton.drop_holder(h.key, h.grant_id, now_us);
      PERFORM baton.settle_all(r.keys, now_us, true, true);
      RETURN baton.say(3::smallint, NULL, true);
    END IF;
    PERFORM baton.change_holder(h.key, h.grant_id,
                                now_us + greatest(h.ttl, h.at_least_for) * 1000, now_us,
                                0::smallint, NULL, NULL);
    PERFORM baton.write_note(h.key, h.set_ordinal, h.set_text);
  END IF;
  PERFORM baton.extend(r.keys, r.grant_id, now_us);
  reply.tokens := baton.tokens_of(r.keys, r.grant_id, now_us);
  RETURN reply;
END $$;

CREATE OR REPLACE FUNCTION baton.extend(ks text[], g uuid, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton.lock l SET expires = greatest(l.expires, now_us + l.ttl * 1000)
    WHERE l.key = ANY (ks) AND l.grant_id = g AND l.expires > now_us;
  UPDATE baton.holder h SET expires = greatest(h.expires, now_us + h.ttl * 1000)
    WHERE h.key = ANY (ks) AND h.grant_id = g AND h.expires > now_us;
END $$;

-- A place in every queue of the request, all with one turn. Repeating it only refreshes.
CREATE OR REPLACE FUNCTION baton.queue_up(r baton.request, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  until    bigint := now_us + r.ticket * 1000;
  own_turn bigint;
BEGIN
  SELECT w.turn INTO own_turn
    FROM unnest(r.keys) WITH ORDINALITY a (key, i)
    JOIN baton.waiter w ON w.key = a.key AND w.grant_id = r.grant_id AND w.class = 1
    WHERE w.stale > now_us AND w.turn > 0 ORDER BY a.i DESC LIMIT 1;
  FOR i IN 1 .. cardinality(r.keys) LOOP
    UPDATE baton.waiter w SET stale = until
      WHERE w.key = r.keys[i] AND w.grant_id = r.grant_id AND w.class = 1 AND w.stale > now_us;
    CONTINUE WHEN FOUND;
    DELETE FROM baton.waiter w
      WHERE w.key = r.keys[i] AND w.grant_id = r.grant_id AND w.class = 1;
    own_turn := coalesce(own_turn, nextval('baton.counter'));
    INSERT INTO baton.waiter VALUES (
      r.keys[i], 1, own_turn, r.grant_id, r.modes[i], r.ttl, r.at_least_for, r.handoff, until,
      cardinality(r.keys) = 1, r.predicate, r.owner, r.channel, r.metadata, r.if_below,
      r.set_ordinal, r.set_text);
    UPDATE baton.lock l SET waiting = true WHERE l.key = r.keys[i] AND NOT l.waiting;
  END LOOP;
END $$;

-- The ordinal says that somebody was there before.
CREATE OR REPLACE FUNCTION baton.superseded(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  k       text;
  dropped boolean := false;
  did     integer := 0;
BEGIN
  IF NOT locked THEN
    PERFORM FROM unnest(r.keys) a (key)
      JOIN baton.waiter w ON w.key = a.key AND w.grant_id = r.grant_id AND w.class = 1
      WHERE w.stale > now_us;
    IF FOUND THEN RETURN baton.needs_locks(); END IF;
    RETURN baton.say(3::smallint, NULL, false);
  END IF;
  FOREACH k IN ARRAY r.keys LOOP
    dropped := baton.drop_waiter(k, r.grant_id, 1::smallint) OR dropped;
  END LOOP;
  IF dropped THEN did := baton.settle_all(r.keys, now_us, true, true); END IF;
  RETURN baton.say(3::smallint, NULL, did > 1);
END $$;

-- The most likely obstacle by far: one name, held by another in X. Then nobody is to be promoted,
-- nobody else holds, and who waits does not matter. Gives ends and holders, or null.
CREATE OR REPLACE FUNCTION baton.shut_out(
  r baton.request, l baton.lock, now_us bigint) RETURNS baton.reply
LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  IF l.mode = 5 AND l.expires > now_us AND l.grant_id <> r.grant_id THEN
    reply.ends := l.expires;
    reply.holders := json_build_array(json_build_array(
      l.grant_id, l.mode, l.token, l.state, l.since, l.expires, l.ttl, l.revoked, l.reason,
      l.predicate, l.owner, l.metadata));
  END IF;
  RETURN reply;
END $$;

CREATE OR REPLACE FUNCTION baton.acquire(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  did   integer := 0;
  l     baton.lock;
  reply baton.reply;
BEGIN
  SELECT * INTO l FROM baton.lock o WHERE o.key = r.keys[1];
  IF cardinality(r.keys) = 1 AND l.entombed IS NULL
     AND (r.if_below IS NULL OR l.note_ordinal < r.if_below) THEN
    reply := baton.shut_out(r, l, now_us);
  END IF;
  IF reply.ends IS NULL THEN
    did := baton.settle_all(r.keys, now_us, false, locked);
    IF did > 0 AND NOT locked THEN RETURN baton.needs_locks(); END IF;
    IF l.entombed IS NOT NULL THEN
      PERFORM FROM unnest(l.entombed, l.entombed_until) t (grant_id, until)
        WHERE t.grant_id = r.grant_id AND t.until > now_us;
      IF FOUND THEN RETURN baton.say(6::smallint, 'cancelled before it arrived', did > 1); END IF;
    END IF;
    PERFORM FROM baton.holding h
      WHERE h.key = ANY (r.keys) AND h.grant_id = r.grant_id AND h.expires > now_us;
    IF FOUND THEN
      IF NOT locked THEN RETURN baton.needs_locks(); END IF;
      reply := baton.take_again(r, now_us);
      reply.durable := reply.durable OR did > 1;
      RETURN reply;
    END IF;
    IF coalesce(l.note_ordinal, 0) >= r.if_below THEN
      reply := baton.superseded(r, now_us, locked);
      reply.durable := reply.durable OR did > 1;
      RETURN reply;
    END IF;
    reply := baton.obstacle(r, now_us);
  END IF;
  IF reply.ends IS NULL THEN
    IF NOT locked THEN RETURN baton.needs_locks(); END IF;
    RETURN baton.take(r, ROW(NULL, r.grant_id, NULL, NULL, NULL, NULL, NULL, NULL, r.ttl,
                             r.at_least_for, NULL, NULL, r.predicate, r.owner, r.channel,
                             r.metadata, NULL, r.set_ordinal, r.set_text)::baton.holder, now_us);
  END IF;
  reply.outcome := 2;
  IF r.ticket > 0 THEN
    IF NOT locked THEN RETURN baton.needs_locks(); END IF;
    PERFORM baton.queue_up(r, now_us);
    reply.outcome := 1;
  END IF;
  reply.durable := did > 1;
  RETURN reply;
END $$;

CREATE OR REPLACE FUNCTION baton.claim(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  did    integer := 0;
  l      baton.lock;
  own    baton.waiter;
  queues integer;
  reply  baton.reply;
BEGIN
  SELECT * INTO l FROM baton.lock o WHERE o.key = r.keys[1];
  IF cardinality(r.keys) = 1 THEN reply := baton.shut_out(r, l, now_us); END IF;
  IF reply.ends IS NULL THEN
    did := baton.settle_all(r.keys, now_us, false, locked);
    IF did > 0 AND NOT locked THEN RETURN baton.needs_locks(); END IF;
    PERFORM FROM baton.holding h
      WHERE h.key = ANY (r.keys) AND h.grant_id = r.grant_id AND h.expires > now_us;
    IF FOUND THEN
      IF NOT locked THEN RETURN baton.needs_locks(); END IF;
      reply := baton.take_again(r, now_us);
      reply.durable := reply.durable OR did > 1;
      RETURN reply;
    END IF;
  END IF;
  -- A join by each key, here and elsewhere: with `= ANY`, a young table is searched by key and
  -- class alone, which is the whole queue.
  SELECT count(*) INTO queues FROM unnest(r.keys) a (key)
    JOIN baton.waiter w ON w.key = a.key AND w.grant_id = r.grant_id AND w.class = 1
    WHERE w.stale > now_us;
  IF queues < cardinality(r.keys) THEN
    -- Without locks, it may have been promoted between the two looks.
    IF NOT locked THEN
      PERFORM FROM baton.holding h
        WHERE h.key = ANY (r.keys) AND h.grant_id = r.grant_id AND h.expires > now_us;
      IF FOUND THEN RETURN baton.needs_locks(); END IF;
    END IF;
    RETURN baton.say(6::smallint, 'no longer in the queue', did > 1);
  END IF;
  SELECT * INTO own FROM baton.waiter w
    WHERE w.key = r.keys[1] AND w.grant_id = r.grant_id AND w.class = 1;
  IF l.note_ordinal >= own.if_below THEN
    reply := baton.superseded(r, now_us, locked);
    reply.durable := reply.durable OR did > 1;
    RETURN reply;
  END IF;
  IF reply.ends IS NULL THEN reply := baton.obstacle(r, now_us); END IF;
  IF reply.ends IS NULL THEN
    IF NOT locked THEN RETURN baton.needs_locks(); END IF;
    RETURN baton.take(r, ROW(NULL, own.grant_id, NULL, NULL, NULL, NULL, NULL, NULL, own.ttl,
                             own.at_least_for, NULL, NULL, own.predicate, own.owner, own.channel,
                             own.metadata, NULL, own.set_ordinal, own.set_text)::baton.holder,
                      now_us);
  END IF;
  IF r.ticket > 0 THEN
    IF NOT locked THEN RETURN baton.needs_locks(); END IF;
    UPDATE baton.waiter w SET stale = now_us + r.ticket * 1000
      FROM unnest(r.keys) a (key)
      WHERE w.key = a.key AND w.grant_id = r.grant_id AND w.class = 1;
  END IF;
  reply.outcome := 1;
  reply.durable := did > 1;
  RETURN reply;
END $$;

-- Touches nothing but its own holders: no settling.
CREATE OR REPLACE FUNCTION baton.renew(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  why   text := baton.not_holding(r.keys, r.grant_id, now_us);
  reply baton.reply;
BEGIN
  IF why IS NOT NULL THEN RETURN baton.say(6::smallint, why, false); END IF;
  PERFORM FROM baton.holding h
    WHERE h.key = ANY (r.keys) AND h.grant_id = r.grant_id AND h.expires > now_us AND h.state = 1;
  IF FOUND THEN RETURN baton.say(6::smallint, 'not claimed yet', false); END IF;
  IF NOT locked THEN RETURN baton.needs_locks(); END IF;
  reply := baton.granted(r.keys[1]);
  PERFORM baton.extend(r.keys, r.grant_id, now_us);
  PERFORM baton.write_note(r.keys[1], r.set_ordinal, r.set_text);
  reply.tokens := baton.tokens_of(r.keys, r.grant_id, now_us);
  RETURN reply;
END $$;
