-- Revokes holders, or removes them at once. See acquire.sql.

-- Without a grant it hits every holder.
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
