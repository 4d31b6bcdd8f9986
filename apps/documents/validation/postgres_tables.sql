-- The verdicts of validation in PostgreSQL. sqlite_tables.sql has the same columns.

CREATE TABLE $schema.validations (
  document_id    uuid PRIMARY KEY,
  event_id       uuid NOT NULL,
  result         text NOT NULL,
  reasons        text NOT NULL,
  correlation_id varchar(255),
  validated_at   timestamptz NOT NULL
);
CREATE INDEX idx_validations_correlation_id ON $schema.validations (correlation_id);
