-- Old rows that the checkpoint calls settled, and that are not: gives them to the next look.
-- $1 lane, $2 token, $3 age in ms.
UPDATE $schema.outbox_events e SET xid = pg_catalog.pg_current_xact_id()
FROM $schema.outbox_lane l
WHERE l.lane = $1::smallint AND l.token = $2::bigint AND e.lane = l.lane
  AND l.system_identifier = (SELECT system_identifier FROM pg_catalog.pg_control_system())
  AND e.status = 'PENDING' AND e.next_retry_at IS NULL
  AND e.created_at < pg_catalog.clock_timestamp() - $3::bigint * interval '1 millisecond'
  AND pg_catalog.pg_visible_in_snapshot(e.xid, l.seen)
