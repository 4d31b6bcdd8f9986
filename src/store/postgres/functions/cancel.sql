-- Undoes an acquire whose fate is unknown, or leaves a queue. See acquire.sql.

-- Keeps a late acquire of this grant from taking effect until then.
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
