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

-- How many documents have ended, for the metrics (document_metrics.h). A change is a row of its own,
-- so that no transaction waits for another one; now and then they are added up.
CREATE TABLE $schema.ended_changes (status text NOT NULL, change integer NOT NULL);
CREATE TABLE $schema.ended_documents (status text PRIMARY KEY, documents bigint NOT NULL);

CREATE FUNCTION $schema.documents_count_ended() RETURNS trigger LANGUAGE plpgsql
SET search_path = $schema, pg_temp AS $$
BEGIN
  IF OLD.status IN ('REJECTED', 'ENRICHED') THEN
    INSERT INTO ended_changes VALUES (OLD.status, -1);
  END IF;
  IF NEW.status IN ('REJECTED', 'ENRICHED') THEN
    INSERT INTO ended_changes VALUES (NEW.status, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER documents_ended AFTER UPDATE OF status ON $schema.documents
  FOR EACH ROW WHEN (OLD.status <> NEW.status AND (OLD.status IN ('REJECTED', 'ENRICHED')
                                                   OR NEW.status IN ('REJECTED', 'ENRICHED')))
  EXECUTE FUNCTION $schema.documents_count_ended();
