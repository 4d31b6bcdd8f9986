-- The tables of ingestion in PostgreSQL. sqlite_tables.sql has the same columns.

-- status_rank orders the states (status.h): a document never goes back.
CREATE TABLE $schema.documents (
  id             uuid PRIMARY KEY,
  title          text NOT NULL,
  content_type   text NOT NULL,
  content        text,
  content_url    text,
  metadata       text NOT NULL,
  owner          text NOT NULL,
  status         text NOT NULL DEFAULT 'UPLOADED',
  status_rank    integer NOT NULL DEFAULT 0,
  details        text NOT NULL DEFAULT '{}',
  correlation_id varchar(255) NOT NULL,
  created_at     timestamptz NOT NULL,
  updated_at     timestamptz NOT NULL
);
CREATE INDEX idx_documents_correlation_id ON $schema.documents (correlation_id);
CREATE INDEX idx_documents_status ON $schema.documents (status, id);
CREATE INDEX idx_documents_owner ON $schema.documents (owner, id);

CREATE TABLE $schema.idempotency_keys (
  key          text PRIMARY KEY,
  request_hash text NOT NULL,
  document_id  uuid NOT NULL,
  response     text NOT NULL,
  created_at   timestamptz NOT NULL
);
CREATE INDEX idx_idempotency_keys_created_at ON $schema.idempotency_keys (created_at);
