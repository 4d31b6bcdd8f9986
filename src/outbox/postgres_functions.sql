-- The functions of the outbox. All of them run with the rights of the caller, which needs INSERT on
-- outbox_events, and look up no name in the caller's schemas.

-- Wakes the relay if it sleeps. A NOTIFY takes a lock of the whole server at commit, so it is sent
-- only if a relay sleeps on this lane: it then holds the lock that is tried here. A relay that does
-- not get the lock, because a transaction like this one has it, does not go to sleep.
CREATE OR REPLACE FUNCTION $schema.outbox_wake(lane smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared('$schema.outbox_events'::regclass::oid::int, lane) THEN
    PERFORM pg_notify('baton_outbox', lane::text);
  END IF;
END
$$;

-- What Outbox::add calls, which has checked the event. In every transaction of a service, so it has
-- no search_path of its own, which costs as much as an index: each name says its schema instead.
CREATE OR REPLACE FUNCTION $schema.outbox_put(
  event_id uuid, type text, aggregate_type text, aggregate_id text, exchange text,
  routing_key text, payload text, headers text, correlation_id text, causation_id text,
  traceparent text, version integer, quiet boolean)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  its_lane CONSTANT smallint :=
    pg_catalog.hashtextextended($4 COLLATE pg_catalog."C", 0) OPERATOR(pg_catalog.&) 15;
BEGIN
  INSERT INTO $schema.outbox_events (
    lane, slot, event_id, type, aggregate_type, aggregate_id, exchange, routing_key, payload,
    headers, correlation_id, causation_id, traceparent, version)
  VALUES (its_lane,
          pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp())
                           OPERATOR(pg_catalog./) 86400)::bigint OPERATOR(pg_catalog.&) 7,
          $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
  -- As outbox_wake does.
  IF NOT $13 AND NOT pg_catalog.pg_try_advisory_xact_lock_shared(
       '$schema.outbox_events'::pg_catalog.regclass::pg_catalog.oid::integer, its_lane) THEN
    PERFORM pg_catalog.pg_notify('baton_outbox', its_lane::text);
  END IF;
END
$$;

-- What Outbox::add_all calls. The positions are in the order of the arrays.
CREATE OR REPLACE FUNCTION $schema.outbox_put_all(
  event_id uuid[], type text[], aggregate_type text[], aggregate_id text[], exchange text[],
  routing_key text[], payload text[], headers text[], correlation_id text[], causation_id text[],
  traceparent text[], version integer[], quiet boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  today CONSTANT smallint := floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint & 7;
BEGIN
  INSERT INTO $schema.outbox_events (
    lane, slot, event_id, type, aggregate_type, aggregate_id, exchange, routing_key, payload,
    headers, correlation_id, causation_id, traceparent, version)
  SELECT hashtextextended(e.aggregate_id COLLATE "C", 0) & 15, today,
         e.event_id, e.type, e.aggregate_type, e.aggregate_id, e.exchange, e.routing_key, e.payload,
         e.headers, nullif(e.correlation_id, ''), nullif(e.causation_id, ''),
         nullif(e.traceparent, ''), e.version
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) WITH ORDINALITY
       AS e (event_id, type, aggregate_type, aggregate_id, exchange, routing_key, payload, headers,
             correlation_id, causation_id, traceparent, version, number)
  ORDER BY e.number;
  IF NOT $13 THEN
    PERFORM $schema.outbox_wake(l.lane)
    FROM (SELECT DISTINCT (hashtextextended(a COLLATE "C", 0) & 15)::smallint AS lane
          FROM unnest($4) a) l;
  END IF;
END
$$;

-- What the library and its consumers refuse, although this server calls it JSON; else NULL. Most
-- payloads are done with the first look at each.
CREATE OR REPLACE FUNCTION $schema.outbox_unreadable(payload text) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  json CONSTANT text COLLATE "C" := payload;
  rest text COLLATE "C";
BEGIN
  IF length(json) - length(translate(json, '[{', '')) > 64 THEN
    -- Only the brackets; then the innermost ones go, 64 times.
    rest := translate(regexp_replace(regexp_replace(json, '"(?:[^"\\]|\\.)*"', '', 'g'),
                                     '[^][{}]+', '', 'g'), '{}', '[]');
    FOR level IN 1..64 LOOP
      rest := replace(rest, '[]', '');
      EXIT WHEN rest = '';
    END LOOP;
    IF rest <> '' THEN
      RETURN 'the payload of an event is nested deeper than 64 levels';
    END IF;
  END IF;
  IF json ~ '\\u[dD][89a-fA-F]' THEN
    rest := regexp_replace(replace(json, '\\', '__'),
      '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g');
    IF rest ~ '\\u[dD][89a-fA-F]' THEN
      RETURN 'the payload of an event has half of a surrogate pair';
    END IF;
  END IF;
  IF json ~ '[0-9][eE]\+?[0-9]{3}|[0-9]{200}' THEN
    BEGIN  -- which costs a subtransaction, so only here
      IF EXISTS (
           SELECT FROM regexp_matches(regexp_replace(json, '"(?:[^"\\]|\\.)*"', '', 'g'),
                                      '[0-9.]+(?:[eE][-+]?[0-9]+)?', 'g') AS found (number)
           WHERE (number[1] ~ '[eE]\+?[0-9]{3}' OR length(number[1]) > 200)
             AND number[1]::numeric >= 1.7976931348623158e308) THEN
        RETURN 'the payload of an event has a number that is too large';
      END IF;
    EXCEPTION WHEN numeric_value_out_of_range OR invalid_text_representation THEN
      RETURN 'the payload of an event has a number that is too large or has too many digits';
    END;
  END IF;
  RETURN NULL;
END
$$;

-- Adds an event in the transaction of the caller and gives its id, for programs in any language:
--
--   SELECT outbox_add('DocumentUploaded', 'doc-7', '{"pages":3}', exchange => 'documents');
--
-- An exchange is needed. payload and headers are JSON texts; headers are an object of texts.
-- Without a routing key, it is made from the type: document.uploaded. quiet: see OutboxOptions.
CREATE OR REPLACE FUNCTION $schema.outbox_add(
  type text, aggregate_id text, payload text DEFAULT '{}', exchange text DEFAULT '',
  routing_key text DEFAULT '', aggregate_type text DEFAULT '', headers text DEFAULT '{}',
  correlation_id text DEFAULT '', causation_id text DEFAULT '', traceparent text DEFAULT '',
  version integer DEFAULT 1, event_id uuid DEFAULT NULL, quiet boolean DEFAULT false)
RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  id   uuid := event_id;
  key  text COLLATE "C" := coalesce(routing_key, '');  -- whatever the caller's texts have
  what text;
BEGIN
  -- As routing_key_of does in C++.
  IF key = '' THEN
    key := regexp_replace(type COLLATE "C", '([a-z0-9])([A-Z])', '\1.\2', 'g');
    key := regexp_replace(key, '([A-Z])([A-Z][a-z])', '\1.\2', 'g');
    key := trim('.' FROM lower(regexp_replace(key, '[._ -]+', '.', 'g') COLLATE "C"));
  END IF;
  what := CASE
    WHEN coalesce(type, '') = '' THEN 'an event needs a type, as DocumentUploaded'
    WHEN coalesce(aggregate_id, '') = '' THEN
      'an event needs an aggregate: what it has happened to'
    WHEN coalesce(exchange, '') = '' THEN
      'an event needs an exchange, where it is published: exchange => ''documents'''
    WHEN key = '' THEN 'no routing key can be made from the type of the event'
    WHEN greatest(octet_length(type), octet_length(aggregate_id), octet_length(aggregate_type),
                  octet_length(exchange), octet_length(key)) > 255 THEN
      'types, aggregates, exchanges and routing keys have at most 255 bytes'
    WHEN concat(type, aggregate_id, aggregate_type, exchange, key) COLLATE "C"
         ~ '[\x01-\x1f\x7f-\x9f]' THEN
      'a type, aggregate, exchange or routing key has a control character'
    WHEN payload IS NULL OR octet_length(payload) > 1048576 THEN
      'the payload of an event is JSON of at most 1048576 bytes'
    WHEN headers IS NULL OR octet_length(headers) > 32768 OR json_typeof(headers::json) <> 'object'
      THEN 'the headers of an event are a JSON object of at most 32768 bytes'
    WHEN position('\u0000' IN replace(headers COLLATE "C", '\\', '__')) > 0 THEN
      'a header of an event has a NUL character, \u0000'
    WHEN EXISTS (SELECT FROM json_each(headers::json) h
                 WHERE json_typeof(h.value) <> 'string' OR octet_length(h.key) NOT BETWEEN 1 AND 255)
      THEN 'the headers of an event are texts, with names of 1 to 255 bytes'
    WHEN EXISTS (SELECT FROM json_each_text(headers::json) h
                 WHERE h.key COLLATE "C" ~ '[\x01-\x1f\x7f-\x9f]')
      THEN 'the name of a header has a control character'
    WHEN (SELECT sum(octet_length(h.key) + octet_length(h.value))
          FROM json_each_text(headers::json) h) > 16384
      THEN 'the headers of an event have at most 16384 bytes'
    WHEN (headers::json -> 'CC') IS NOT NULL OR (headers::json -> 'BCC') IS NOT NULL THEN
      'the headers CC and BCC have a meaning of their own to RabbitMQ'
    WHEN correlation_id COLLATE "C" !~ '^[!-~]{0,128}$' OR
         causation_id COLLATE "C" !~ '^[!-~]{0,128}$' THEN
      'correlation and causation ids have at most 128 visible ASCII characters'
    WHEN traceparent <> '' AND
         (octet_length(traceparent) > 128 OR traceparent COLLATE "C" !~
            '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?$'
          OR traceparent COLLATE "C" LIKE '00%' AND octet_length(traceparent) <> 55) THEN
      'the traceparent of an event is malformed'
    WHEN version IS NULL OR version < 1 THEN 'the version of an event counts from 1'
  END;
  IF what IS NOT NULL THEN
    RAISE EXCEPTION '%', what USING ERRCODE = '22023';
  END IF;
  PERFORM payload::json;  -- an error if it is none
  what := $schema.outbox_unreadable(payload);
  IF what IS NOT NULL THEN
    RAISE EXCEPTION '%', what USING ERRCODE = '22023';
  END IF;
  -- A UUID of version 7: the time in milliseconds, then random digits.
  IF id IS NULL THEN
    id := (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' ||
           substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid;
  END IF;
  PERFORM $schema.outbox_put(
    id, type, coalesce(aggregate_type, ''), aggregate_id, exchange, key, payload,
    headers, nullif(correlation_id, ''), nullif(causation_id, ''), nullif(traceparent, ''),
    version, coalesce(quiet, false));
  RETURN id;
END
$$;
