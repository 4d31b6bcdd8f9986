-- The event log of a service. $schema is the first schema of the search path of the role that
-- installs it.

CREATE TABLE $schema.event_log_version (
  version integer NOT NULL,
  changed timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- An append to a stream locks its row first, and draws positions then: so the order of the
-- positions of a stream is the order of its versions.
CREATE TABLE $schema.event_stream (
  stream  text PRIMARY KEY,
  version bigint NOT NULL
) WITH (fillfactor = 80);

-- Positions come only from the default of an INSERT, which has locked the table by then, one by one
-- (CACHE 1): readers rely on both.
CREATE TABLE $schema.event_log (
  position       bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
  stream         text NOT NULL,
  stream_version bigint NOT NULL,
  event_id       uuid NOT NULL,
  type           text NOT NULL,
  aggregate_type text NOT NULL,
  exchange       text NOT NULL,
  routing_key    text NOT NULL,
  payload        text NOT NULL,
  headers        text NOT NULL,
  correlation_id text,
  causation_id   text,
  traceparent    text,
  version        integer NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX event_log_stream ON $schema.event_log (stream, stream_version);
CREATE UNIQUE INDEX event_log_event_id ON $schema.event_log (event_id);

-- How far each processor has come: `position` is that of the last row it has handled.
-- rebuild_position is that of a rebuild, beside which it goes on; NULL: none.
-- Times are milliseconds since 1970.
CREATE TABLE $schema.event_processor (
  name             text PRIMARY KEY,
  kind             text NOT NULL,
  tables           text NOT NULL DEFAULT '',
  position         bigint NOT NULL DEFAULT 0,
  status           text NOT NULL DEFAULT 'RUNNING',
  attempts         integer NOT NULL DEFAULT 0,
  last_error       text,
  error_position   bigint,
  failed_at        bigint,
  rebuild_status   text,
  rebuild_position bigint,
  rebuild_error    text,
  owner            text,
  owner_token      bigint,
  owned_since      bigint,
  alive_at         bigint,
  stalled_by       text,
  stalled_since    bigint
) WITH (fillfactor = 50);

INSERT INTO $schema.event_log_version (version) VALUES (1);
