-- The inbox of a service, in its own database. $schema is the first schema of the search path of
-- the role that installs it.

CREATE TABLE $schema.inbox_version (
  version integer NOT NULL,
  changed timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The ledger: every event that a consumer has decided about. A delivery whose id is here is a
-- duplicate. outcome: done, rejected (a business error), retrying (a row of inbox_events waits),
-- dead or discarded. Only done, rejected and discarded age out, counted from processed_at.
CREATE TABLE $schema.processed_events (
  consumer     text NOT NULL,
  event_id     uuid NOT NULL,
  outcome      text NOT NULL,
  processed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, event_id)
);
-- For retention. Rows come in the order of their times, so this index costs an INSERT nothing.
CREATE INDEX processed_events_processed_at ON $schema.processed_events
  USING brin (processed_at) WITH (pages_per_range = 32, autosummarize = on);

-- The messages in trouble. The columns that outbox_events has too have the same names.
--
-- status: RETRY, HELD (an earlier event of its aggregate is in trouble), DEAD or DISCARDED.
-- retry_count: attempts that have begun. claim: written anew by everything that changes who may go
-- on with the row; it never goes back. lane, position: of the outbox that the event came from;
-- arrival is the order in which rows came, which an ordered consumer keeps. raw: the body of a
-- message that is no event; its event_id is made from a hash of the message if it has none that can
-- be used.
CREATE TABLE $schema.inbox_events (
  arrival         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer        text NOT NULL,
  queue           text NOT NULL,
  status          text NOT NULL,
  retry_count     integer NOT NULL DEFAULT 0,
  next_retry_at   timestamptz,
  last_error      text,
  first_failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_failed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  claim           bigint NOT NULL DEFAULT 0,
  lane            smallint NOT NULL DEFAULT 0,
  position        bigint NOT NULL DEFAULT 0,
  event_id        uuid NOT NULL,
  type            text NOT NULL,
  aggregate_type  text NOT NULL,
  aggregate_id    text NOT NULL,
  exchange        text NOT NULL,
  routing_key     text NOT NULL,
  payload         text NOT NULL,
  headers         text NOT NULL,
  correlation_id  text,
  causation_id    text,
  traceparent     text,
  version         integer NOT NULL,
  message_id      text NOT NULL,
  content_type    text NOT NULL,
  raw             bytea,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX inbox_events_event_id ON $schema.inbox_events (consumer, event_id);
CREATE INDEX inbox_events_due ON $schema.inbox_events (consumer, next_retry_at)
  WHERE status = 'RETRY';
-- The head of an aggregate is the one of these that arrived first.
CREATE INDEX inbox_events_aggregate ON $schema.inbox_events (consumer, aggregate_id, arrival)
  WHERE status IN ('RETRY', 'HELD', 'DEAD');
CREATE INDEX inbox_events_held ON $schema.inbox_events (consumer, aggregate_id)
  WHERE status = 'HELD';
CREATE INDEX inbox_events_status ON $schema.inbox_events (status, consumer, arrival);

INSERT INTO $schema.inbox_version (version) VALUES (1);
