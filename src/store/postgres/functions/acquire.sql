-- What src/core/acquire.cc does for an acquire. As every verb, it answers a request at now_us.
-- Unlocked, it only reads, and returns an outcome of null as soon as it would have to change
-- something; locked, the rows of all names of the request exist and are locked.

-- Grants every name of the request to `h`, which has all values but key, mode and token.
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

-- The grant is there already: its time starts again.
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

-- A place in every queue of the request, all with the same turn. A repeated request only
-- refreshes it.
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

-- The note's ordinal is not below what the request asked for.
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

-- The most likely obstacle by far: one name, held by another grant in X. Then nobody can be
-- promoted, nobody else holds the name, and the queue does not matter. Sets ends and holders, or
-- nothing.
CREATE OR REPLACE FUNCTION baton.shut_out(
  r baton.request, l baton.lock, now_us bigint) RETURNS baton.reply
LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  IF l.mode = 5 AND l.expires > now_us AND l.grant_id <> r.grant_id THEN
    reply.ends := l.expires;
    reply.holders := '[' || baton.shown_lock(l) || ']';
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
