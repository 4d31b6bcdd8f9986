-- The outbox of a service, in its own SQLite file. The columns are those of PostgreSQL; xid, lane
-- and slot are always 0, for SQLite has one writer at a time: the order of positions is the order
-- of commits. Times are milliseconds since 1970; a next_retry_at without end is
-- 9223372036854775807.

CREATE TABLE outbox_version (
  version INTEGER NOT NULL,
  changed INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE TABLE outbox_events (
  position       INTEGER PRIMARY KEY AUTOINCREMENT,
  xid            INTEGER NOT NULL DEFAULT 0,
  lane           INTEGER NOT NULL DEFAULT 0,
  slot           INTEGER NOT NULL DEFAULT 0,
  status         TEXT NOT NULL DEFAULT 'PENDING',
  retry_count    INTEGER NOT NULL DEFAULT 0,
  next_retry_at  INTEGER,
  last_error     TEXT,
  sent_at        INTEGER,
  event_id       TEXT NOT NULL,
  type           TEXT NOT NULL,
  aggregate_type TEXT NOT NULL DEFAULT '',
  aggregate_id   TEXT NOT NULL,
  exchange       TEXT NOT NULL DEFAULT '',
  routing_key    TEXT NOT NULL,
  payload        TEXT NOT NULL DEFAULT '{}',
  headers        TEXT NOT NULL DEFAULT '{}',
  correlation_id TEXT,
  causation_id   TEXT,
  traceparent    TEXT,
  version        INTEGER NOT NULL DEFAULT 1,
  created_at     INTEGER NOT NULL
    DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE UNIQUE INDEX outbox_events_event_id ON outbox_events (event_id);
CREATE INDEX outbox_events_pending ON outbox_events (position) WHERE status = 'PENDING';
CREATE INDEX outbox_events_retry ON outbox_events (position) WHERE next_retry_at IS NOT NULL;

-- Whether a relay reads: it writes updated_at. token is the fence: that of the newest owner.
CREATE TABLE outbox_lane (
  lane       INTEGER PRIMARY KEY,
  token      INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER
);
INSERT INTO outbox_lane (lane) VALUES (0);

INSERT INTO outbox_version (version) VALUES (1);
