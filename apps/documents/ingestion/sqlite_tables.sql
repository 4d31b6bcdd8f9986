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
