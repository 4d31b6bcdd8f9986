-- The schema of the postgres: store with functions of edition 1, for the test of an upgrade.
CREATE SCHEMA baton;
CREATE TABLE baton.meta (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  integer NOT NULL,
  changed  timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO baton.meta (version) VALUES (0);
CREATE SEQUENCE baton.counter AS bigint CACHE 1;
CREATE SEQUENCE baton.schema_version AS bigint MINVALUE 0 CACHE 1;
SELECT setval('baton.schema_version', 0);
CREATE TABLE baton.lock (
  key            text COLLATE "C" PRIMARY KEY,
  grant_id       uuid,                         -- null: no holder here
  token          bigint   NOT NULL DEFAULT 0,  -- stays after the release, for the fence
  place          bigint   NOT NULL DEFAULT 0,  -- the order in which holders came; 0: the first
  since          bigint   NOT NULL DEFAULT 0,  -- when the last holder came
  expires        bigint   NOT NULL DEFAULT 0,
  ttl            bigint   NOT NULL DEFAULT 0,
  at_least_for   bigint   NOT NULL DEFAULT 0,
  note_ordinal   bigint   NOT NULL DEFAULT 0,
  mode           smallint NOT NULL DEFAULT 0,
  state          smallint NOT NULL DEFAULT 0,
  revoked        boolean  NOT NULL DEFAULT false,
  crowded        boolean  NOT NULL DEFAULT false,  -- baton.holder has rows of this name
  waiting        boolean  NOT NULL DEFAULT false,  -- baton.waiter has rows of this name
  predicate      text     NOT NULL DEFAULT '',
  owner          text     NOT NULL DEFAULT '',
  channel        text     NOT NULL DEFAULT '',     -- whom to NOTIFY
  reason         text     NOT NULL DEFAULT '',
  note_text      text     NOT NULL DEFAULT '',
  metadata       jsonb,
  if_below       bigint,                           -- these three: to do when a hand-off is claimed
  set_ordinal    bigint,
  set_text       text,
  entombed       uuid[],                           -- acquires that must not take effect any more
  entombed_until bigint[]
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE baton.holder (
  key          text COLLATE "C" NOT NULL,
  grant_id     uuid     NOT NULL,
  mode         smallint NOT NULL,
  state        smallint NOT NULL,
  token        bigint   NOT NULL,
  place        bigint   NOT NULL,
  since        bigint   NOT NULL,
  expires      bigint   NOT NULL,
  ttl          bigint   NOT NULL,
  at_least_for bigint   NOT NULL,
  revoked      boolean  NOT NULL,
  reason       text     NOT NULL,
  predicate    text     NOT NULL,
  owner        text     NOT NULL,
  channel      text     NOT NULL,
  metadata     jsonb,
  if_below     bigint,
  set_ordinal  bigint,
  set_text     text,
  PRIMARY KEY (key, grant_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE baton.waiter (
  key          text COLLATE "C" NOT NULL,
  class        smallint NOT NULL,
  turn         bigint   NOT NULL,
  grant_id     uuid     NOT NULL,
  mode         smallint NOT NULL,
  ttl          bigint   NOT NULL,
  at_least_for bigint   NOT NULL,
  handoff      bigint   NOT NULL,
  stale        bigint   NOT NULL,  -- forgotten then, unless refreshed
  alone        boolean  NOT NULL,  -- waits for one name only, so it can be promoted
  predicate    text     NOT NULL,
  owner        text     NOT NULL,
  channel      text     NOT NULL,
  metadata     jsonb,
  if_below     bigint,
  set_ordinal  bigint,
  set_text     text,
  PRIMARY KEY (key, class, turn),
  UNIQUE (key, grant_id, class)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE VIEW baton.holding AS
  SELECT key, grant_id, mode, state, token, place, since, expires, ttl, at_least_for, revoked,
         reason, predicate, owner, channel, metadata, if_below, set_ordinal, set_text
  FROM baton.lock WHERE grant_id IS NOT NULL
  UNION ALL
  SELECT key, grant_id, mode, state, token, place, since, expires, ttl, at_least_for, revoked,
         reason, predicate, owner, channel, metadata, if_below, set_ordinal, set_text
  FROM baton.holder;
CREATE TYPE baton.request AS (
  ord integer, verb smallint, grant_id uuid, keys text[], modes smallint[], ttl bigint,
  ticket bigint, handoff bigint, at_least_for bigint, tombstone bigint, if_below bigint,
  set_ordinal bigint, set_text text, version bigint, predicate text, owner text, channel text,
  metadata jsonb, heir text, reason text, flag boolean
);
CREATE TYPE baton.reply AS (
  ord integer, outcome smallint, tokens bigint[], note_ordinal bigint, note_text text,
  ends bigint,         -- when the first of those in the way goes by itself
  now_us bigint, message text, holders text, waiters text, waiting bigint, durable boolean
);
CREATE OR REPLACE FUNCTION baton.micros(at bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(at, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
$$;
CREATE OR REPLACE FUNCTION baton.clash(mode smallint) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT ('{32,60,50,58,62,63}'::integer[])[mode + 1]
$$;
CREATE OR REPLACE FUNCTION baton.clashes(a smallint, b smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT (('{32,60,50,58,62,63}'::integer[])[a + 1] >> b) & 1 = 1
$$;
CREATE OR REPLACE FUNCTION baton.covers(held smallint, asked smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT (('{1,3,5,13,31,63}'::integer[])[held + 1] >> asked) & 1 = 1
$$;
CREATE OR REPLACE FUNCTION baton.put(h baton.holder, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  others boolean;
BEGIN
  UPDATE baton.lock l
    SET grant_id = h.grant_id, mode = h.mode, state = h.state, token = h.token, place = h.place,
        since = h.since, expires = h.expires, ttl = h.ttl, at_least_for = h.at_least_for,
        revoked = h.revoked, reason = h.reason, predicate = h.predicate, owner = h.owner,
        channel = h.channel, metadata = h.metadata, if_below = h.if_below,
        set_ordinal = h.set_ordinal, set_text = h.set_text
    WHERE l.key = h.key AND (l.grant_id IS NULL OR l.expires <= now_us)
    RETURNING l.crowded INTO others;
  IF FOUND THEN
    IF others THEN PERFORM baton.drop_lapsed(h.key, now_us); END IF;
    RETURN;
  END IF;
  DELETE FROM baton.holder o WHERE o.key = h.key AND o.expires <= now_us;
  INSERT INTO baton.holder VALUES (h.*);
  UPDATE baton.lock l SET crowded = true WHERE l.key = h.key AND NOT l.crowded;
END $$;
CREATE OR REPLACE FUNCTION baton.drop_holder(k text, g uuid, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton.lock l SET grant_id = NULL, expires = 0, since = now_us
    WHERE l.key = k AND l.grant_id = g;
  IF FOUND THEN RETURN; END IF;
  DELETE FROM baton.holder h WHERE h.key = k AND (h.grant_id = g OR h.expires <= now_us);
  UPDATE baton.lock l SET crowded = false
    WHERE l.key = k AND l.crowded AND NOT EXISTS (SELECT FROM baton.holder h WHERE h.key = k);
END $$;
CREATE OR REPLACE FUNCTION baton.change_holder(
  k text, g uuid, new_expires bigint, new_since bigint, new_state smallint, new_mode smallint,
  new_token bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton.lock l
    SET expires = coalesce(new_expires, l.expires), since = coalesce(new_since, l.since),
        state = coalesce(new_state, l.state), mode = coalesce(new_mode, l.mode),
        token = coalesce(new_token, l.token)
    WHERE l.key = k AND l.grant_id = g;
  IF FOUND THEN RETURN; END IF;
  UPDATE baton.holder h
    SET expires = coalesce(new_expires, h.expires), since = coalesce(new_since, h.since),
        state = coalesce(new_state, h.state), mode = coalesce(new_mode, h.mode),
        token = coalesce(new_token, h.token)
    WHERE h.key = k AND h.grant_id = g;
END $$;
CREATE OR REPLACE FUNCTION baton.drop_lapsed(k text, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton.lock l SET grant_id = NULL, expires = 0, since = now_us
    WHERE l.key = k AND l.grant_id IS NOT NULL AND l.expires <= now_us;
  DELETE FROM baton.holder h WHERE h.key = k AND h.expires <= now_us;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE baton.lock l SET crowded = false
    WHERE l.key = k AND NOT EXISTS (SELECT FROM baton.holder h WHERE h.key = k);
END $$;
CREATE OR REPLACE FUNCTION baton.drop_waiter(k text, g uuid, of_class smallint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM baton.waiter w
    WHERE w.key = k AND w.grant_id = g AND (of_class IS NULL OR w.class = of_class);
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE baton.lock l SET waiting = false
    WHERE l.key = k AND NOT EXISTS (SELECT FROM baton.waiter w WHERE w.key = k);
  RETURN true;
END $$;
CREATE OR REPLACE FUNCTION baton.wake(channel text, g uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF channel <> '' AND pg_notification_queue_usage() < 0.9 THEN
    PERFORM pg_notify(channel, g::text);
  END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.promote(w baton.waiter, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  t bigint := nextval('baton.counter');
BEGIN
  DELETE FROM baton.waiter v WHERE v.key = w.key AND v.grant_id = w.grant_id;
  PERFORM baton.put(ROW(w.key, w.grant_id, w.mode, 1, t, t, now_us, now_us + w.handoff * 1000,
                        w.ttl, w.at_least_for, false, '', w.predicate, w.owner, w.channel,
                        w.metadata, w.if_below, w.set_ordinal, w.set_text)::baton.holder, now_us);
  PERFORM baton.wake(w.channel, w.grant_id);
END $$;
CREATE OR REPLACE FUNCTION baton.settle(k text, now_us bigint, freed boolean, locked boolean)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  w       baton.waiter;
  lapsed  boolean;
  held    integer;
  others  integer;
  ahead   integer := 0;
  did     integer := 0;
  dropped boolean := false;
BEGIN
  SELECT (l.grant_id IS NOT NULL AND l.expires <= now_us) OR (l.crowded AND EXISTS (
           SELECT FROM baton.holder h WHERE h.key = k AND h.expires <= now_us))
    INTO lapsed FROM baton.lock l WHERE l.key = k AND l.waiting;
  IF NOT FOUND THEN RETURN 0; END IF;
  SELECT coalesce(bit_or(baton.clash(h.mode)), 0) INTO held
    FROM baton.holding h WHERE h.key = k AND h.expires > now_us;
  IF held = 63 THEN RETURN 0; END IF;  -- X: its holder has nothing to convert to either
  freed := freed OR lapsed;
  FOR w IN SELECT * FROM baton.waiter v WHERE v.key = k ORDER BY v.class, v.turn LOOP
    others := held;
    IF w.class = 0 THEN
      SELECT CASE WHEN bool_or(h.grant_id = w.grant_id) THEN
                    coalesce(bit_or(baton.clash(h.mode)) FILTER (WHERE h.grant_id <> w.grant_id), 0)
             END
        INTO others FROM baton.holding h WHERE h.key = k AND h.expires > now_us;
    END IF;
    IF w.stale <= now_us OR others IS NULL THEN
      freed := true;
      dropped := true;
      IF locked THEN
        DELETE FROM baton.waiter v WHERE v.key = k AND v.class = w.class AND v.turn = w.turn;
      END IF;
      CONTINUE;
    END IF;
    IF ((others | ahead) >> w.mode) & 1 = 1 THEN
      ahead := ahead | baton.clash(w.mode);
    ELSIF w.alone THEN
      IF NOT locked THEN RETURN 1; END IF;
      PERFORM baton.promote(w, now_us);
      did := 2;
      held := held | baton.clash(w.mode);
    ELSE
      ahead := ahead | baton.clash(w.mode);
      IF freed THEN
        IF NOT locked THEN RETURN 1; END IF;
        PERFORM baton.wake(w.channel, w.grant_id);
        did := did | 1;
      END IF;
    END IF;
    EXIT WHEN w.class = 1 AND (held | ahead) = 63;
  END LOOP;
  IF NOT locked THEN RETURN 0; END IF;
  IF lapsed AND did > 0 THEN PERFORM baton.drop_lapsed(k, now_us); END IF;
  IF dropped OR did > 0 THEN
    UPDATE baton.lock l SET waiting = EXISTS (SELECT FROM baton.waiter v WHERE v.key = k)
      WHERE l.key = k;
  END IF;
  RETURN did;
END $$;
CREATE OR REPLACE FUNCTION baton.settle_all(
  keys text[], now_us bigint, freed boolean, locked boolean) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  k   text;
  did integer := 0;
BEGIN
  FOREACH k IN ARRAY keys LOOP
    did := did | baton.settle(k, now_us, freed, locked);
  END LOOP;
  RETURN did;
END $$;
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
  IF k = 'BATON:schema' AND new_ordinal IS NOT NULL THEN
    PERFORM setval('baton.schema_version', 0, false);
  END IF;
  UPDATE baton.lock l SET note_ordinal = coalesce(new_ordinal, l.note_ordinal),
                          note_text = coalesce(new_text, l.note_text)
    WHERE l.key = k;
END $$;
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
  SELECT count(*) INTO queues FROM unnest(r.keys) a (key)
    JOIN baton.waiter w ON w.key = a.key AND w.grant_id = r.grant_id AND w.class = 1
    WHERE w.stale > now_us;
  IF queues < cardinality(r.keys) THEN
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
CREATE OR REPLACE FUNCTION baton.queue(k text, now_us bigint) RETURNS SETOF baton.waiter
LANGUAGE sql STABLE AS $$
  SELECT * FROM baton.waiter w
  WHERE w.key = k AND w.stale > now_us
    AND (w.class = 1 OR EXISTS (SELECT FROM baton.holding h WHERE h.key = k
                                AND h.grant_id = w.grant_id AND h.expires > now_us))
$$;
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
CREATE OR REPLACE FUNCTION baton.answer(r baton.request, now_us bigint, locked boolean)
RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  version bigint;
  reply   baton.reply;
BEGIN
  IF r.version IS NOT NULL THEN
    SELECT l.note_ordinal INTO version FROM baton.lock l WHERE l.key = 'BATON:schema';
    IF coalesce(version, 0) <> r.version THEN
      reply := baton.say(4::smallint, format('the store has schema version %s, this client %s',
                                             coalesce(version, 0), r.version), false);
      reply.ord := r.ord;
      RETURN reply;
    END IF;
  END IF;
  CASE r.verb
    WHEN 0 THEN reply := baton.acquire(r, now_us, locked);
    WHEN 1 THEN reply := baton.claim(r, now_us, locked);
    WHEN 2 THEN reply := baton.renew(r, now_us, locked);
    WHEN 3 THEN reply := baton.convert(r, now_us, locked);
    WHEN 4 THEN reply := baton.release(r, now_us, locked);
    WHEN 5 THEN reply := baton.cancel(r, now_us, locked);
    WHEN 6 THEN reply := baton.break(r, now_us, locked);
    WHEN 7 THEN reply := baton.look(r, now_us);
  END CASE;
  reply.ord := r.ord;
  reply.now_us := now_us;
  RETURN reply;
END $$;
CREATE OR REPLACE FUNCTION baton.may_only_look(r baton.request) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF r.verb = 7 THEN RETURN true; END IF;
  IF r.verb IN (0, 1) THEN RETURN r.ticket <= 0; END IF;
  RETURN NOT EXISTS (SELECT FROM baton.lock l WHERE l.key = ANY (r.keys));
END $$;
CREATE OR REPLACE FUNCTION baton.lock_names(ks text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO baton.lock AS l (key)
    SELECT DISTINCT k COLLATE "C" FROM unnest(ks) k ORDER BY 1
    ON CONFLICT (key) DO UPDATE SET expires = l.expires WHERE false;
END $$;
CREATE OR REPLACE FUNCTION baton.apply_all(rs baton.request[], at bigint)
RETURNS SETOF baton.reply LANGUAGE plpgsql AS $$
DECLARE
  r       baton.request;
  reply   baton.reply;
  now_us  bigint := baton.micros(at);
  later   baton.request[] := '{}';
  names   text[] := '{}';
  durable boolean := false;
  schema_changes boolean := false;
BEGIN
  FOREACH r IN ARRAY rs LOOP
    reply := NULL;
    IF NOT (schema_changes AND r.version IS NOT NULL) AND NOT r.keys && names
       AND baton.may_only_look(r) THEN
      reply := baton.answer(r, now_us, false);
    END IF;
    IF reply.outcome IS NOT NULL THEN
      RETURN NEXT reply;
    ELSE
      later[cardinality(later) + 1] := r;
      names := names || r.keys;
      schema_changes := schema_changes OR r.keys[1] = 'BATON:schema';
    END IF;
  END LOOP;
  IF cardinality(later) = 0 THEN RETURN; END IF;
  PERFORM baton.lock_names(names);
  now_us := baton.micros(at);  -- waiting for the locks took time
  IF schema_changes THEN PERFORM baton.tell_version(); END IF;
  FOREACH r IN ARRAY later LOOP
    reply := baton.answer(r, now_us, true);
    durable := durable OR reply.durable;
    RETURN NEXT reply;
  END LOOP;
  IF NOT durable THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
END $$;
CREATE OR REPLACE FUNCTION baton.apply(
  verbs smallint[], grants uuid[], counts integer[], keys text[], modes smallint[], ttls bigint[],
  tickets bigint[], handoffs bigint[], at_leasts bigint[], tombstones bigint[], if_belows bigint[],
  ordinals bigint[], texts text[], versions bigint[], predicates text[], owners text[],
  channels text[], metadatas text[], heirs text[], reasons text[], flags boolean[], at bigint)
RETURNS SETOF baton.reply LANGUAGE plpgsql AS $$
DECLARE
  rs baton.request[];
BEGIN
  SELECT array_agg(ROW(
           q.ord, q.verb, q.grant_id, keys[q.upto - q.names + 1 : q.upto],
           modes[q.upto - q.names + 1 : q.upto], q.ttl, q.ticket, q.handoff, q.at_least,
           q.tombstone, q.if_below, q.ordinal, q.text, q.version, q.predicate, q.owner, q.channel,
           q.metadata::jsonb, q.heir, q.reason, q.flag)::baton.request ORDER BY q.ord)
    INTO rs
    FROM (SELECT u.*, sum(u.names) OVER (ORDER BY u.ord)::integer AS upto
          FROM unnest(verbs, grants, counts, ttls, tickets, handoffs, at_leasts, tombstones,
                      if_belows, ordinals, texts, versions, predicates, owners, channels,
                      metadatas, heirs, reasons, flags) WITH ORDINALITY
               u (verb, grant_id, names, ttl, ticket, handoff, at_least, tombstone, if_below,
                  ordinal, text, version, predicate, owner, channel, metadata, heir, reason, flag,
                  ord)) q;
  RETURN QUERY SELECT * FROM baton.apply_all(rs, at);
END $$;
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
COMMENT ON TABLE baton.meta IS 'functions 1 1';
UPDATE baton.meta SET version = 1, changed = clock_timestamp();
