-- Parts of replies that several verbs use.
--
-- Outcomes: 0 granted, 1 queued, 2 busy, 3 superseded, 4 denied, 5 deadlock, 6 lost, 7 done.
--
-- Queries for one name take its key as a parameter, in PL/pgSQL: so they are planned once a
-- session, and always by key.

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

-- The reply that means: answer again when the rows are locked.
CREATE OR REPLACE FUNCTION baton.needs_locks() RETURNS baton.reply LANGUAGE plpgsql AS $$
DECLARE
  reply baton.reply;
BEGIN
  RETURN reply;
END $$;

-- A holder as JSON; holder_of() in codec.cc reads it.
CREATE OR REPLACE FUNCTION baton.shown(h baton.holding) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_array(h.grant_id, h.mode, h.token, h.state, h.since, h.expires, h.ttl,
                          h.revoked, h.reason, h.predicate, h.owner, h.metadata)
$$;

-- The same of the holder in the row of a name. Plain SQL, so that the planner inlines it into the
-- statements that tell who holds a name.
CREATE OR REPLACE FUNCTION baton.shown_lock(l baton.lock) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT json_build_array(l.grant_id, l.mode, l.token, l.state, l.since, l.expires, l.ttl,
                          l.revoked, l.reason, l.predicate, l.owner, l.metadata)::text
$$;

-- The holders that conflict with a grant in these modes: the first 8, and when the first one
-- expires. Null if there are none.
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

-- When the first conflicting waiter ahead of the grant goes stale.
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

-- Why the grant cannot go on, or null: it must hold every name, and be neither released nor
-- revoked.
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

-- Granted, with the note as it was before this request.
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
