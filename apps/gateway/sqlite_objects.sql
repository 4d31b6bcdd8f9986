-- What the services keep in SQLite. The names carry a prefix because the file may hold other things
-- as well, such as the locks.

CREATE TABLE IF NOT EXISTS gateway_meta (version INTEGER NOT NULL);
INSERT INTO gateway_meta SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM gateway_meta);

-- There is no unique index over the active ones, on purpose: a Kubernetes API server has none
-- either, and what keeps duplicates out must work on both.
CREATE TABLE IF NOT EXISTS gateway_request (
  name TEXT NOT NULL PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  target TEXT NOT NULL,
  signal TEXT NOT NULL,
  phase TEXT NOT NULL,
  duplicates INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL DEFAULT 0,
  execution TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS gateway_request_active
  ON gateway_request (fingerprint) WHERE phase IN ('Pending', 'Running');
CREATE INDEX IF NOT EXISTS gateway_request_pending
  ON gateway_request (target, created_at, name) WHERE phase = 'Pending';
CREATE INDEX IF NOT EXISTS gateway_request_running
  ON gateway_request (execution) WHERE phase = 'Running';
CREATE INDEX IF NOT EXISTS gateway_request_ended
  ON gateway_request (finished_at) WHERE phase IN ('Completed', 'Failed');

CREATE TABLE IF NOT EXISTS gateway_execution (
  name TEXT NOT NULL PRIMARY KEY,
  request TEXT NOT NULL,
  target TEXT NOT NULL,
  phase TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS gateway_execution_active
  ON gateway_execution (target) WHERE phase = 'Running';
CREATE INDEX IF NOT EXISTS gateway_execution_ended
  ON gateway_execution (finished_at) WHERE phase IN ('Completed', 'Failed');

-- Who did what, in the order in which it was committed.
CREATE TABLE IF NOT EXISTS gateway_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  object TEXT NOT NULL,
  target TEXT NOT NULL,
  actor TEXT NOT NULL,
  token INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS gateway_event_at ON gateway_event (at);
