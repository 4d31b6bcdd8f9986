-- The inbox of a service, in its own SQLite file. Tables and columns are those of PostgreSQL
-- (postgres_tables.sql says what they mean); times are milliseconds since 1970.

CREATE TABLE inbox_version (
  version INTEGER NOT NULL,
  changed INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE TABLE processed_events (
  consumer     TEXT NOT NULL,
  event_id     TEXT NOT NULL,
  outcome      TEXT NOT NULL,
  processed_at INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;
CREATE INDEX processed_events_processed_at ON processed_events (processed_at);

CREATE TABLE inbox_events (
  arrival         INTEGER PRIMARY KEY AUTOINCREMENT,
  consumer        TEXT NOT NULL,
  queue           TEXT NOT NULL,
  status          TEXT NOT NULL,
  retry_count     INTEGER NOT NULL DEFAULT 0,
  next_retry_at   INTEGER,
  last_error      TEXT,
  first_failed_at INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  last_failed_at  INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  claim           INTEGER NOT NULL DEFAULT 0,
  lane            INTEGER NOT NULL DEFAULT 0,
  position        INTEGER NOT NULL DEFAULT 0,
  event_id        TEXT NOT NULL,
  type            TEXT NOT NULL,
  aggregate_type  TEXT NOT NULL,
  aggregate_id    TEXT NOT NULL,
  exchange        TEXT NOT NULL,
  routing_key     TEXT NOT NULL,
  payload         TEXT NOT NULL,
  headers         TEXT NOT NULL,
  correlation_id  TEXT,
  causation_id    TEXT,
  traceparent     TEXT,
  version         INTEGER NOT NULL,
  message_id      TEXT NOT NULL,
  content_type    TEXT NOT NULL,
  raw             BLOB,
  created_at      INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE UNIQUE INDEX inbox_events_event_id ON inbox_events (consumer, event_id);
CREATE INDEX inbox_events_due ON inbox_events (consumer, next_retry_at)
  WHERE status = 'RETRY';
CREATE INDEX inbox_events_aggregate ON inbox_events (consumer, aggregate_id, arrival)
  WHERE status IN ('RETRY', 'HELD', 'DEAD');
CREATE INDEX inbox_events_held ON inbox_events (consumer, aggregate_id) WHERE status = 'HELD';
CREATE INDEX inbox_events_status ON inbox_events (status, consumer, arrival);

INSERT INTO inbox_version (version) VALUES (1);
