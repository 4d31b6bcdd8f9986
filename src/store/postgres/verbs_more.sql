-- The verbs that change or end a hold, or only look. See verbs.sql.

CREATE OR REPLACE FUNCTION baton.queue_conversion(
  r baton.request, targets smallint[], now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  h        baton.holder;
  turn_all bigint;
  own_turn bigint;
BEGIN
  FOR i IN 1 .. cardinality(r.keys) LOOP
    SELECT * INTO h FROM baton.holding o
      WHERE o.key = r.keys[i] AND o.grant_id = r.grant_id AND o.expires > now_us;
    CONTINUE WHEN baton.covers(h.mode, targets[i]);
    SELECT w.turn INTO own_turn FROM baton.waiter w
      WHERE w.key = h.key AND w.grant_id = h.grant_id AND w.class = 0 AND w.stale > now_us;
    IF own_turn IS NULL THEN
      turn_all := coalesce(turn_all, nextval('baton.counter'));
      own_turn := turn_all;
    END IF;
    DELETE FROM baton.waiter w
      WHERE w.key = h.key AND w.grant_id = h.grant_id AND w.class = 0;
    INSERT INTO baton.waiter VALUES (
      h.key, 0, own_turn, h.grant_id, targets[i], h.ttl, h.at_least_for, 0,
      now_us + r.ticket * 1000, false, h.predicate, h.owner, h.channel, h.metadata, NULL, NULL,
      NULL);
    UPDATE baton.lock l SET waiting = true WHERE l.key = h.key AND NOT l.waiting;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION baton.make_conversion(
  r baton.request, targets smallint[], now_us bigint) RETURNS baton.reply
LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply := baton.granted(r.keys[1]);
  h     baton.holder;
BEGIN
  FOR i IN 1 .. cardinality(r.keys) LOOP
    SELECT * INTO h FROM baton.holding o
      WHERE o.key = r.keys[i] AND o.grant_id = r.grant_id AND o.expires > now_us;
    -- A stronger hold is a new hold: its token must be above those that others had beside it.
    IF NOT baton.covers(h.mode, targets[i]) THEN
      h.token := nextval('baton.counter');
      PERFORM baton.drop_lapsed(h.key, now_us);
    END IF;
    PERFORM baton.change_holder(h.key, h.grant_id, greatest(h.expires, now_us + h.ttl * 1000),
                                NULL, NULL, targets[i], h.token);
    PERFORM baton.drop_waiter(h.key, h.grant_id, 0::smallint);
    reply.tokens[i] := h.token;
  END LOOP;
  PERFORM baton.settle_all(r.keys, now_us, true, true);
  RETURN reply;
END $$;

-- Ahead of the queue: only the other holders are asked.
CREATE OR REPLACE FUNCTION baton.convert(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  did      integer := baton.settle_all(r.keys, now_us, false, locked);
  why      text;
  h        baton.holder;
  targets  smallint[];
  up_keys  text[] := '{}';
  up_modes smallint[] := '{}';
  deadlock boolean := false;
  reply    baton.reply;
BEGIN
  IF did > 0 AND NOT locked THEN RETURN baton.needs_locks(); END IF;
  why := baton.not_holding(r.keys, r.grant_id, now_us);
  IF why IS NOT NULL THEN RETURN baton.say(6::smallint, why, did > 1); END IF;
  FOR i IN 1 .. cardinality(r.keys) LOOP
    SELECT * INTO h FROM baton.holding o
      WHERE o.key = r.keys[i] AND o.grant_id = r.grant_id AND o.expires > now_us;
    IF h.state = 1 THEN RETURN baton.say(6::smallint, 'not claimed yet', did > 1); END IF;
    targets[i] := CASE WHEN baton.covers(h.mode, r.modes[i]) THEN r.modes[i]
                       WHEN baton.covers(r.modes[i], h.mode) THEN r.modes[i]
                       ELSE 4 END;
    CONTINUE WHEN baton.covers(h.mode, targets[i]);
    up_keys := up_keys || r.keys[i];
    up_modes := up_modes || targets[i];
    PERFORM FROM baton.holding o
      JOIN baton.waiter w ON w.key = o.key AND w.grant_id = o.grant_id AND w.class = 0
      WHERE o.key = r.keys[i] AND o.expires > now_us AND o.grant_id <> r.grant_id
        AND baton.clashes(targets[i], o.mode) AND w.stale > now_us
        AND baton.clashes(h.mode, w.mode);
    deadlock := deadlock OR FOUND;
  END LOOP;
  SELECT o.ends, o.holders INTO reply.ends, reply.holders
    FROM baton.holders_in_the_way(up_keys, up_modes, r.grant_id, now_us) o;
  reply.durable := did > 1;
  IF deadlock OR (reply.ends IS NOT NULL AND r.ticket <= 0) THEN
    reply.outcome := CASE WHEN deadlock THEN 5 ELSE 2 END;
    RETURN reply;
  END IF;
  IF NOT locked THEN RETURN baton.needs_locks(); END IF;
  IF reply.ends IS NOT NULL THEN
    PERFORM baton.queue_conversion(r, targets, now_us);
    reply.outcome := 1;
    RETURN reply;
  END IF;
  RETURN baton.make_conversion(r, targets, now_us);
END $$;

-- Puts a waiter of that owner at the head of the queue.
CREATE OR REPLACE FUNCTION baton.prefer(k text, heir text, now_us bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton.waiter w SET turn = nextval('baton.counter') - 4611686018427387904
    WHERE w.key = k AND w.class = 1 AND w.turn = (
      SELECT v.turn FROM baton.waiter v
      WHERE v.key = k AND v.class = 1 AND v.alone AND v.owner = heir AND v.stale > now_us
      ORDER BY v.turn LIMIT 1);
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION baton.release(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  did     integer := baton.settle_all(r.keys, now_us, false, locked);
  h       baton.holder;
  missing integer := 0;
  noted   boolean := false;
BEGIN
  IF NOT locked THEN
    PERFORM FROM baton.holding o
      WHERE o.key = ANY (r.keys) AND o.grant_id = r.grant_id AND o.expires > now_us
        AND o.state <> 2;
    IF FOUND OR did > 0 THEN RETURN baton.needs_locks(); END IF;
    RETURN baton.say(6::smallint, 'the grant has ended', false);
  END IF;
  FOR i IN 1 .. cardinality(r.keys) LOOP
    SELECT * INTO h FROM baton.holding o
      WHERE o.key = r.keys[i] AND o.grant_id = r.grant_id AND o.expires > now_us AND o.state <> 2;
    IF NOT FOUND THEN
      missing := missing + 1;
      CONTINUE;
    END IF;
    IF i = 1 THEN
      IF r.heir <> '' AND NOT baton.prefer(h.key, r.heir, now_us) THEN
        RETURN baton.say(4::smallint, 'nobody of ''' || r.heir || ''' waits', did > 1);
      END IF;
      noted := r.set_ordinal IS NOT NULL OR r.set_text IS NOT NULL;
      PERFORM baton.write_note(h.key, r.set_ordinal, r.set_text);
    END IF;
    IF h.state = 0 AND h.since + h.at_least_for * 1000 > now_us THEN
      PERFORM baton.change_holder(h.key, h.grant_id, h.since + h.at_least_for * 1000, NULL,
                                  2::smallint, NULL, NULL);
    ELSE
      PERFORM baton.drop_holder(h.key, h.grant_id, now_us);
    END IF;
    PERFORM baton.drop_waiter(h.key, h.grant_id, 0::smallint);
  END LOOP;
  IF missing < cardinality(r.keys) THEN
    did := did | baton.settle_all(r.keys, now_us, true, true);
  END IF;
  IF missing > 0 THEN RETURN baton.say(6::smallint, 'the grant has ended', noted OR did > 1); END IF;
  RETURN baton.say(7::smallint, NULL, noted OR did > 1);
END $$;

CREATE OR REPLACE FUNCTION baton.entomb(k text, g uuid, until bigint, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  grants uuid[];
  untils bigint[];
BEGIN
  SELECT array_agg(t.grant_id), array_agg(t.until) INTO grants, untils
    FROM baton.lock l, unnest(l.entombed, l.entombed_until) t (grant_id, until)
    WHERE l.key = k AND t.grant_id <> g AND t.until > now_us;
  UPDATE baton.lock l
    SET entombed = coalesce(grants, '{}') || g, entombed_until = coalesce(untils, '{}') || until
    WHERE l.key = k;
END $$;

CREATE OR REPLACE FUNCTION baton.cancel(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  did     integer := baton.settle_all(r.keys, now_us, false, locked);
  buries  boolean := NOT r.flag AND r.tombstone > 0;
  changed boolean := false;
  k       text;
BEGIN
  IF NOT locked THEN
    PERFORM FROM baton.holding h WHERE h.key = ANY (r.keys) AND h.grant_id = r.grant_id;
    IF FOUND OR did > 0 OR buries THEN RETURN baton.needs_locks(); END IF;
    PERFORM FROM unnest(r.keys) a (key)
      JOIN baton.waiter w ON w.key = a.key AND w.grant_id = r.grant_id;
    IF FOUND THEN RETURN baton.needs_locks(); END IF;
    RETURN baton.say(7::smallint, NULL, false);
  END IF;
  FOREACH k IN ARRAY r.keys LOOP
    changed := baton.drop_waiter(k, r.grant_id, CASE WHEN r.flag THEN 0::smallint END) OR changed;
    CONTINUE WHEN r.flag;
    PERFORM FROM baton.holding h
      WHERE h.key = k AND h.grant_id = r.grant_id AND h.state <> 2 AND h.expires > now_us;
    CONTINUE WHEN NOT FOUND;
    PERFORM baton.drop_holder(k, r.grant_id, now_us);
    changed := true;
  END LOOP;
  IF buries THEN
    PERFORM baton.entomb(r.keys[1], r.grant_id, now_us + r.tombstone * 1000, now_us);
  END IF;
  IF changed THEN did := did | baton.settle_all(r.keys, now_us, true, true); END IF;
  RETURN baton.say(7::smallint, NULL, buries OR did > 1);
END $$;

-- A break without a grant hits every holder.
CREATE OR REPLACE FUNCTION baton.break(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  k     text := r.keys[1];
  did   integer := baton.settle(k, now_us, false, locked);
  reply baton.reply := baton.say(7::smallint, NULL, did > 1);
  h     record;
BEGIN
  SELECT json_agg(baton.shown(o) ORDER BY o.place)::text INTO reply.holders FROM baton.holding o
    WHERE o.key = k AND o.expires > now_us AND (r.grant_id IS NULL OR o.grant_id = r.grant_id);
  IF NOT locked AND (did > 0 OR reply.holders IS NOT NULL) THEN RETURN baton.needs_locks(); END IF;
  IF reply.holders IS NULL THEN RETURN reply; END IF;
  FOR h IN SELECT o.grant_id, o.channel FROM baton.holding o
           WHERE o.key = k AND o.expires > now_us
             AND (r.grant_id IS NULL OR o.grant_id = r.grant_id) LOOP
    PERFORM baton.wake(h.channel, h.grant_id);
    IF r.flag THEN
      PERFORM baton.drop_holder(k, h.grant_id, now_us);
    ELSE
      UPDATE baton.lock l SET revoked = true, reason = r.reason
        WHERE l.key = k AND l.grant_id = h.grant_id;
      UPDATE baton.holder o SET revoked = true, reason = r.reason
        WHERE o.key = k AND o.grant_id = h.grant_id;
    END IF;
  END LOOP;
  IF r.flag THEN PERFORM baton.settle(k, now_us, true, true); END IF;
  reply.durable := true;
  RETURN reply;
END $$;

-- Who really waits, in no order.
CREATE OR REPLACE FUNCTION baton.queue(k text, now_us bigint) RETURNS SETOF baton.waiter
LANGUAGE sql STABLE AS $$
  SELECT * FROM baton.waiter w
  WHERE w.key = k AND w.stale > now_us
    AND (w.class = 1 OR EXISTS (SELECT FROM baton.holding h WHERE h.key = k
                                AND h.grant_id = w.grant_id AND h.expires > now_us))
$$;

-- A name as baton::LockInfo wants it, in one statement so that it is one moment.
CREATE OR REPLACE FUNCTION baton.described(
  k text, now_us bigint, most bigint, OUT holders text, OUT waiters text, OUT waiting bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT (SELECT json_agg(baton.shown(h) ORDER BY h.place)::text FROM baton.holding h
          WHERE h.key = k AND h.expires > now_us),
         (SELECT json_agg(json_build_array(w.grant_id, w.mode, w.predicate, w.owner, w.class)
                          ORDER BY w.class, w.turn)::text
          FROM (SELECT * FROM baton.queue(k, now_us) q ORDER BY q.class, q.turn LIMIT most) w),
         (SELECT count(*) FROM baton.queue(k, now_us))
    INTO holders, waiters, waiting;
END $$;

CREATE OR REPLACE FUNCTION baton.look(r baton.request, now_us bigint) RETURNS baton.reply
LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply := baton.say(7::smallint, NULL, false);
BEGIN
  SELECT d.holders, d.waiters, d.waiting, coalesce(l.note_ordinal, 0), coalesce(l.note_text, '')
    INTO reply.holders, reply.waiters, reply.waiting, reply.note_ordinal, reply.note_text
    FROM baton.described(r.keys[1], now_us, NULL) d LEFT JOIN baton.lock l ON l.key = r.keys[1];
  RETURN reply;
END $$;
