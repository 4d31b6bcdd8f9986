-- What EventLog::append calls, which has checked the events. It runs with the rights of the caller,
-- which needs INSERT on event_log and SELECT, INSERT and UPDATE on event_stream, and looks up no
-- name in the caller's schemas. If the stream is not at `expected`, nothing is written, and
-- last_position is NULL.
CREATE OR REPLACE FUNCTION $schema.event_log_append(
  stream text, expected bigint, event_id uuid[], type text[], aggregate_type text[],
  exchange text[], routing_key text[], payload text[], headers text[], correlation_id text[],
  causation_id text[], traceparent text[], version integer[],
  OUT stream_version bigint, OUT last_position bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  before bigint;
BEGIN
  INSERT INTO $schema.event_stream AS s (stream, version) VALUES ($1, 0) ON CONFLICT DO NOTHING;
  SELECT s.version INTO STRICT before FROM $schema.event_stream s WHERE s.stream = $1 FOR UPDATE;
  IF before <> $2 THEN
    stream_version := before;
    RETURN;
  END IF;
  WITH appended AS (
    INSERT INTO $schema.event_log (
      stream, stream_version, event_id, type, aggregate_type, exchange, routing_key, payload,
      headers, correlation_id, causation_id, traceparent, version)
    SELECT $1, before + e.number, e.event_id, e.type, e.aggregate_type, e.exchange, e.routing_key,
           e.payload, e.headers, nullif(e.correlation_id, ''), nullif(e.causation_id, ''),
           nullif(e.traceparent, ''), e.version
    FROM unnest($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) WITH ORDINALITY
         AS e (event_id, type, aggregate_type, exchange, routing_key, payload, headers,
               correlation_id, causation_id, traceparent, version, number)
    ORDER BY e.number
    RETURNING position)
  SELECT max(a.position), before + count(*) INTO last_position, stream_version FROM appended a;
  UPDATE $schema.event_stream s SET version = stream_version WHERE s.stream = $1;
END
$$;
