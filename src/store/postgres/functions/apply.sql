-- Answers any request; every fast path in ../statements falls back to this.

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

-- Whether to try a request without locks first: it only reads, or will probably find nothing to
-- do. Any other request would be answered twice.
CREATE OR REPLACE FUNCTION baton.may_only_look(r baton.request) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF r.verb = 7 THEN RETURN true; END IF;
  IF r.verb IN (0, 1) THEN RETURN r.ticket <= 0; END IF;
  RETURN NOT EXISTS (SELECT FROM baton.lock l WHERE l.key = ANY (r.keys));
END $$;

-- Creates the missing rows and locks all of them in the order of the keys, so that two batches
-- never deadlock. The update never happens; the row lock that it takes first does.
CREATE OR REPLACE FUNCTION baton.lock_names(ks text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO baton.lock AS l (key)
    SELECT DISTINCT k COLLATE "C" FROM unnest(ks) k ORDER BY 1
    ON CONFLICT (key) DO UPDATE SET expires = l.expires WHERE false;
END $$;

-- Answers a batch as src/core/apply.cc would, one request after the other: first the requests
-- that need no lock, then, when their names are locked, the others. A request that shares a name
-- with an earlier request that needs locks waits for them too, so that their order stays.
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
  -- A crash may lose a release (the lock expires) or a place in a queue (the waiter asks again). It
  -- must not lose a grant, a note or a tombstone.
  IF NOT durable THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
END $$;

-- The same for requests as parallel arrays. `keys` and `modes` are the names of all requests, one
-- after the other; counts[i] of them belong to request i.
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
