-- What enrichment has found, in SQLite: postgres_tables.sql. Times are RFC 3339 text in UTC.

CREATE TABLE enrichments (
  document_id    TEXT PRIMARY KEY,
  event_id       TEXT NOT NULL,
  classification TEXT NOT NULL,
  language       TEXT NOT NULL,
  word_count     INTEGER NOT NULL,
  keywords       TEXT NOT NULL,
  checksum       TEXT NOT NULL,
  correlation_id TEXT,
  enriched_at    TEXT NOT NULL
);
CREATE INDEX idx_enrichments_correlation_id ON enrichments (correlation_id);
