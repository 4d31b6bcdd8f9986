-- Raises the fence of a lane. $1 lane, $2 token. No row: a newer owner has been here.
UPDATE $schema.outbox_lane
SET token = $2::bigint, updated_at = pg_catalog.clock_timestamp()
WHERE lane = $1::smallint AND token <= $2::bigint
RETURNING seen::text, system_identifier::text,
          (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
          pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text
