-- The tables of ingestion in SQLite: those of postgres_tables.sql. Times are RFC 3339 text in UTC.

CREATE TABLE documents (
  id             TEXT PRIMARY KEY,
  title          TEXT NOT NULL,
  content_type   TEXT NOT NULL,
  content        TEXT,
  content_url    TEXT,
  metadata       TEXT NOT NULL,
  owner          TEXT NOT NULL,
  status         TEXT NOT NULL DEFAULT 'UPLOADED',
  status_rank    INTEGER NOT NULL DEFAULT 0,
  details        TEXT NOT NULL DEFAULT '{}',
  correlation_id TEXT NOT NULL,
  created_at     TEXT NOT NULL,
  updated_at     TEXT NOT NULL
);
CREATE INDEX idx_documents_correlation_id ON documents (correlation_id);
CREATE INDEX idx_documents_status ON documents (status, id);
CREATE INDEX idx_documents_owner ON documents (owner, id);

CREATE TABLE idempotency_keys (
  key          TEXT PRIMARY KEY,
  request_hash TEXT NOT NULL,
  document_id  TEXT NOT NULL,
  response     TEXT NOT NULL,
  created_at   TEXT NOT NULL
);
CREATE INDEX idx_idempotency_keys_created_at ON idempotency_keys (created_at);

-- How many documents have ended. There is one writer at a time: no table of changes is needed.
CREATE TABLE ended_documents (status TEXT PRIMARY KEY, documents INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO ended_documents VALUES ('REJECTED', 0), ('ENRICHED', 0);

CREATE TRIGGER documents_ended AFTER UPDATE OF status ON documents
WHEN OLD.status <> NEW.status BEGIN
  UPDATE ended_documents SET documents = documents - 1 WHERE status = OLD.status;
  UPDATE ended_documents SET documents = documents + 1 WHERE status = NEW.status;
END;
