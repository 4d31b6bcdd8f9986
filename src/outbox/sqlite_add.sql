INSERT INTO main.outbox_events (
  event_id, type, aggregate_type, aggregate_id, exchange, routing_key, payload, headers,
  correlation_id, causation_id, traceparent, version)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, nullif(?9, ''), nullif(?10, ''), nullif(?11, ''), ?12
WHERE (SELECT version FROM main.outbox_version) <= 1
RETURNING position
