-- What enrichment has found, in PostgreSQL. sqlite_tables.sql has the same columns.

CREATE TABLE $schema.enrichments (
  document_id    uuid PRIMARY KEY,
  event_id       uuid NOT NULL,
  classification text NOT NULL,
  language       text NOT NULL,
  word_count     bigint NOT NULL,
  keywords       text NOT NULL,
  checksum       text NOT NULL,
  correlation_id varchar(255),
  enriched_at    timestamptz NOT NULL
);
CREATE INDEX idx_enrichments_correlation_id ON $schema.enrichments (correlation_id);
