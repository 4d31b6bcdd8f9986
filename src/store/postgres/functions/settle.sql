-- What src/core/settle.cc does: bring a name up to date and change its holders. Every function
-- here but settle(…, locked => false) needs the row of the name to be locked.

-- The time in microseconds since 1970: the server's clock, or `at` in tests.
CREATE OR REPLACE FUNCTION baton.micros(at bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(at, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
$$;

-- The modes that are incompatible with this one, as bits.
CREATE OR REPLACE FUNCTION baton.clash(mode smallint) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT ('{32,60,50,58,62,63}'::integer[])[mode + 1]
$$;

CREATE OR REPLACE FUNCTION baton.clashes(a smallint, b smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT (('{32,60,50,58,62,63}'::integer[])[a + 1] >> b) & 1 = 1
$$;

-- Whether a holder in mode `held` may do all that `asked` allows.
CREATE OR REPLACE FUNCTION baton.covers(held smallint, asked smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT (('{1,3,5,13,31,63}'::integer[])[held + 1] >> asked) & 1 = 1
$$;

-- Adds a holder: in the row of the name if no live holder is there, else in baton.holder.
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

-- Sets a holder's time, mode, token and state; null leaves a value as it is.
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

-- Removes the holders that have expired. Every function that admits somebody because a holder has
-- expired must call this: a claim or a renewal that started earlier, and then waited for the row
-- lock, still judges the row by its own, older time.
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

-- Removes a grant from the queue: class 0, 1 or (null) both. Returns whether it was there.
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

-- A full notification queue would fail the commit, and a wake-up is only a hint: skip it then.
CREATE OR REPLACE FUNCTION baton.wake(channel text, g uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF channel <> '' AND pg_notification_queue_usage() < 0.9 THEN
    PERFORM pg_notify(channel, g::text);
  END IF;
END $$;

-- Makes a waiter the holder; it must claim the name within its hand-off time.
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

-- Promotes every waiter whose turn has come. Wakes the waiters for several names whose turn has
-- come, which must ask again themselves, if anything was `freed`. Returns 2 if it promoted, else
-- 1 if it woke, else 0. Unlocked, it changes nothing and returns 1 if there is something to do.
--
-- Reads the queue from its head, only as far as a waiter could still be admitted: behind a waiter
-- for X that is one row. Expired and stale rows further back stay; every reader skips them.
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
  -- So that the same expired holder does not wake them again.
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
