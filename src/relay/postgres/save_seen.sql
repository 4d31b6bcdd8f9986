-- The checkpoints, true with the marks of this transaction. $1 lanes, $2 snapshots.
UPDATE $schema.outbox_lane l
SET seen = m.seen::pg_snapshot, updated_at = pg_catalog.clock_timestamp(),
    system_identifier = (SELECT system_identifier FROM pg_catalog.pg_control_system())
FROM unnest($1::smallint[], $2::text[]) AS m (lane, seen)
WHERE l.lane = m.lane
