-- The event log of a service, in its own SQLite file. The columns are those of PostgreSQL. SQLite
-- has one writer at a time: the order of positions is the order of commits. Times are milliseconds
-- since 1970.

CREATE TABLE event_log_version (
  version INTEGER NOT NULL,
  changed INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE TABLE event_stream (
  stream  TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE event_log (
  position       INTEGER PRIMARY KEY AUTOINCREMENT,
  stream         TEXT NOT NULL,
  stream_version INTEGER NOT NULL,
  event_id       TEXT NOT NULL,
  type           TEXT NOT NULL,
  aggregate_type TEXT NOT NULL,
  exchange       TEXT NOT NULL,
  routing_key    TEXT NOT NULL,
  payload        TEXT NOT NULL,
  headers        TEXT NOT NULL,
  correlation_id TEXT,
  causation_id   TEXT,
  traceparent    TEXT,
  version        INTEGER NOT NULL,
  created_at     INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);
CREATE UNIQUE INDEX event_log_stream ON event_log (stream, stream_version);
CREATE UNIQUE INDEX event_log_event_id ON event_log (event_id);

CREATE TABLE event_processor (
  name             TEXT PRIMARY KEY,
  kind             TEXT NOT NULL,
  tables           TEXT NOT NULL DEFAULT '',
  position         INTEGER NOT NULL DEFAULT 0,
  status           TEXT NOT NULL DEFAULT 'RUNNING',
  attempts         INTEGER NOT NULL DEFAULT 0,
  last_error       TEXT,
  error_position   INTEGER,
  failed_at        INTEGER,
  rebuild_status   TEXT,
  rebuild_position INTEGER,
  rebuild_error    TEXT,
  owner            TEXT,
  owner_token      INTEGER,
  owned_since      INTEGER,
  alive_at         INTEGER,
  stalled_by       TEXT,
  stalled_since    INTEGER
) WITHOUT ROWID;

INSERT INTO event_log_version (version) VALUES (1);
