-- A holder changes its modes. See acquire.sql.

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
    -- A stronger hold gets a new token, above those of the holders that shared the name with it.
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

-- A conversion goes ahead of the queue: only the other holders can be in its way.
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
