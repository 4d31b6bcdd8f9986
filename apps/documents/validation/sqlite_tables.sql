-- The verdicts of validation in SQLite: postgres_tables.sql. Times are RFC 3339 text in UTC.

CREATE TABLE validations (
  document_id    TEXT PRIMARY KEY,
  event_id       TEXT NOT NULL,
  result         TEXT NOT NULL,
  reasons        TEXT NOT NULL,
  correlation_id TEXT,
  validated_at   TEXT NOT NULL
);
CREATE INDEX idx_validations_correlation_id ON validations (correlation_id);
