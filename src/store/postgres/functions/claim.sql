-- What src/core/acquire.cc does for a claim: a waiter asks for its turn. See acquire.sql.

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
  -- Joined by key, here and elsewhere: with `= ANY` the planner may search a table without
  -- statistics by key and class alone, and read the whole queue.
  SELECT count(*) INTO queues FROM unnest(r.keys) a (key)
    JOIN baton.waiter w ON w.key = a.key AND w.grant_id = r.grant_id AND w.class = 1
    WHERE w.stale > now_us;
  IF queues < cardinality(r.keys) THEN
    -- Without locks, it may have been promoted between these two queries.
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
