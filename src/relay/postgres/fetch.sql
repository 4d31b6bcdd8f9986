-- Rows that are to be published and whose bodies are not in memory. $1 lane, $2 positions.
SELECT e.lane, e.position, e.xid, e.retry_count,
       pg_catalog.octet_length(e.payload) + pg_catalog.octet_length(e.headers),
       (pg_catalog.date_part('epoch', greatest(least(e.created_at, '9999-01-01'), '0001-01-01'))
        * 1000)::bigint,
       e.event_id, e.type, e.aggregate_type, e.aggregate_id, e.exchange, e.routing_key,
       e.payload, e.headers, e.correlation_id, e.causation_id, e.traceparent, e.version
FROM $schema.outbox_events e
WHERE e.lane = $1::smallint AND e.position = ANY ($2::bigint[]) AND e.status = 'PENDING'
