-- A row that is to be published and whose body is not in memory. $1 its position.
SELECT 0, e.position, e.position, e.retry_count,
       length(CAST(e.payload AS BLOB)) + length(CAST(e.headers AS BLOB)), e.created_at,
       e.event_id, e.type, e.aggregate_type, e.aggregate_id, e.exchange, e.routing_key,
       e.payload, e.headers, e.correlation_id, e.causation_id, e.traceparent, e.version
FROM main.outbox_events e
WHERE e.position = $1 AND e.status = 'PENDING'
