-- A holder keeps its names for another TTL. See acquire.sql.

CREATE OR REPLACE FUNCTION baton.extend(ks text[], g uuid, now_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE baton.lock l SET expires = greatest(l.expires, now_us + l.ttl * 1000)
    WHERE l.key = ANY (ks) AND l.grant_id = g AND l.expires > now_us;
  UPDATE baton.holder h SET expires = greatest(h.expires, now_us + h.ttl * 1000)
    WHERE h.key = ANY (ks) AND h.grant_id = g AND h.expires > now_us;
END $$;

-- Changes nothing but its own holders, so it need not settle the name.
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
