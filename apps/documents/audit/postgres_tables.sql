-- The audit log in PostgreSQL: a row an event, which nobody changes. sqlite_tables.sql has the same
-- columns.

CREATE TABLE $schema.audit_log (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id       uuid NOT NULL UNIQUE,
  event_type     text NOT NULL,
  routing_key    text NOT NULL,
  document_id    text NOT NULL,
  correlation_id varchar(255),
  causation_id   text,
  payload        text NOT NULL,
  occurred_at    timestamptz NOT NULL,
  recorded_at    timestamptz NOT NULL
);
CREATE INDEX idx_audit_log_correlation_id ON $schema.audit_log (correlation_id);
CREATE INDEX idx_audit_log_document_id ON $schema.audit_log (document_id, id);
CREATE INDEX idx_audit_log_event_type ON $schema.audit_log (event_type, id);
CREATE INDEX idx_audit_log_occurred_at ON $schema.audit_log (occurred_at);

-- The rows that are not in the chain yet. A row gets there in the transaction that records it, so
-- that one which commits late is found like any other.
CREATE TABLE $schema.audit_unsealed (audit_id bigint PRIMARY KEY);

-- The hash chain (chain.h). Its order is the order of sealing.
CREATE TABLE $schema.audit_seal (
  sequence      bigint PRIMARY KEY,
  audit_id      bigint NOT NULL UNIQUE,
  previous_hash text NOT NULL,
  hash          text NOT NULL,
  sealed_at     timestamptz NOT NULL
);

CREATE FUNCTION $schema.audit_mark_unsealed() RETURNS trigger LANGUAGE plpgsql
SET search_path = $schema, pg_temp AS $$
BEGIN
  INSERT INTO audit_unsealed VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER audit_log_unsealed AFTER INSERT ON $schema.audit_log
  FOR EACH ROW EXECUTE FUNCTION $schema.audit_mark_unsealed();

CREATE FUNCTION $schema.audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the table % is immutable: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_log_immutable BEFORE UPDATE OR DELETE ON $schema.audit_log
  FOR EACH ROW EXECUTE FUNCTION $schema.audit_refuse();
CREATE TRIGGER audit_log_kept BEFORE TRUNCATE ON $schema.audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION $schema.audit_refuse();
CREATE TRIGGER audit_seal_immutable BEFORE UPDATE OR DELETE ON $schema.audit_seal
  FOR EACH ROW EXECUTE FUNCTION $schema.audit_refuse();
CREATE TRIGGER audit_seal_kept BEFORE TRUNCATE ON $schema.audit_seal
  FOR EACH STATEMENT EXECUTE FUNCTION $schema.audit_refuse();
