-- The outbox of a service. $schema is the first schema of the search path of the role that installs
-- it.

CREATE TABLE $schema.outbox_version (
  version integer NOT NULL,
  changed timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Eight partitions, used in turn, a day each: old events leave by TRUNCATE of a slot, without DDL
-- at run time.
--
-- xid is the transaction that added the event: the relay reads what has become visible between two
-- snapshots. lane has no default, so that an INSERT that does not compute it fails.
-- Marking an event SENT must be a HOT update: status is in no index, and pages have room. There are
-- no CHECKs and no generated columns, which would double the cost of an INSERT.
CREATE TABLE $schema.outbox_events (
  position       bigint GENERATED ALWAYS AS IDENTITY,
  xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
  lane           smallint NOT NULL,
  slot           smallint NOT NULL,
  status         text NOT NULL DEFAULT 'PENDING',
  retry_count    integer NOT NULL DEFAULT 0,
  next_retry_at  timestamptz,
  last_error     text,
  sent_at        timestamptz,
  event_id       uuid NOT NULL,
  type           text NOT NULL,
  aggregate_type text NOT NULL,
  aggregate_id   text NOT NULL,
  exchange       text NOT NULL,
  routing_key    text NOT NULL,
  payload        text NOT NULL,
  headers        text NOT NULL,
  correlation_id text,
  causation_id   text,
  traceparent    text,
  version        integer NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY LIST (slot);

CREATE TABLE $schema.outbox_events_0 PARTITION OF $schema.outbox_events
  FOR VALUES IN (0) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_1 PARTITION OF $schema.outbox_events
  FOR VALUES IN (1) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_2 PARTITION OF $schema.outbox_events
  FOR VALUES IN (2) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_3 PARTITION OF $schema.outbox_events
  FOR VALUES IN (3) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_4 PARTITION OF $schema.outbox_events
  FOR VALUES IN (4) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_5 PARTITION OF $schema.outbox_events
  FOR VALUES IN (5) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_6 PARTITION OF $schema.outbox_events
  FOR VALUES IN (6) WITH (fillfactor = 50);
CREATE TABLE $schema.outbox_events_7 PARTITION OF $schema.outbox_events
  FOR VALUES IN (7) WITH (fillfactor = 50);

CREATE INDEX outbox_events_lane_position ON $schema.outbox_events (lane, position);
CREATE INDEX outbox_events_xid_lane ON $schema.outbox_events (xid, lane);
CREATE UNIQUE INDEX outbox_events_event_id ON $schema.outbox_events (event_id, slot);
CREATE INDEX outbox_events_retry ON $schema.outbox_events (lane, position)
  WHERE next_retry_at IS NOT NULL;

-- How far the relay has come: every event of the lane that is visible in `seen` is SENT, DISCARDED
-- or in the index outbox_events_retry. Snapshots mean nothing in a cluster with another
-- system_identifier. token is the fence of the lane: that of its newest owner.
CREATE TABLE $schema.outbox_lane (
  lane              smallint PRIMARY KEY,
  token             bigint NOT NULL DEFAULT 0,
  seen              pg_snapshot,
  system_identifier bigint,
  updated_at        timestamptz
) WITH (fillfactor = 50);
INSERT INTO $schema.outbox_lane (lane, system_identifier)
SELECT lane, system_identifier FROM generate_series(0, 15) lane, pg_control_system();

INSERT INTO $schema.outbox_version (version) VALUES (1);
