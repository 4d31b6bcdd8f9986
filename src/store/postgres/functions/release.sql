-- A holder gives its names back. See acquire.sql.

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
