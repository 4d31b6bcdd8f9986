-- Shows a name, or all of them.

-- The waiters that are not stale, in no order.
CREATE OR REPLACE FUNCTION baton.queue(k text, now_us bigint) RETURNS SETOF baton.waiter
LANGUAGE sql STABLE AS $$
  SELECT * FROM baton.waiter w
  WHERE w.key = k AND w.stale > now_us
    AND (w.class = 1 OR EXISTS (SELECT FROM baton.holding h WHERE h.key = k
                                AND h.grant_id = w.grant_id AND h.expires > now_us))
$$;

-- A name as baton::LockInfo wants it, in one statement so that it is one snapshot.
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

-- Names behind `after` that start with `prefix` and are held, waited for or (if `idle`) have a
-- note, with at most `most` waiters each. The upper bound is above every text that continues the
-- prefix: no key has more than 765 bytes.
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
    -- Only names with holders or waiters are described: that costs ten times as much as finding
    -- them.
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
