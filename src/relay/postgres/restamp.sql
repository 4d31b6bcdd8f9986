-- Rows that came by a dump from another cluster: their xids say nothing here. $1 lane.
UPDATE $schema.outbox_events SET xid = pg_catalog.pg_current_xact_id()
WHERE lane = $1::smallint AND status = 'PENDING' AND next_retry_at IS NULL
