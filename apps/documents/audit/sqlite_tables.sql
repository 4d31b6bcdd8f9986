-- The audit log in SQLite: postgres_tables.sql. Times are RFC 3339 text in UTC.

CREATE TABLE audit_log (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id       TEXT NOT NULL UNIQUE,
  event_type     TEXT NOT NULL,
  routing_key    TEXT NOT NULL,
  document_id    TEXT NOT NULL,
  correlation_id TEXT,
  causation_id   TEXT,
  payload        TEXT NOT NULL,
  occurred_at    TEXT NOT NULL,
  recorded_at    TEXT NOT NULL
);
CREATE INDEX idx_audit_log_correlation_id ON audit_log (correlation_id);
CREATE INDEX idx_audit_log_document_id ON audit_log (document_id, id);
CREATE INDEX idx_audit_log_event_type ON audit_log (event_type, id);
CREATE INDEX idx_audit_log_occurred_at ON audit_log (occurred_at);

CREATE TABLE audit_unsealed (audit_id INTEGER PRIMARY KEY);

CREATE TABLE audit_seal (
  sequence      INTEGER PRIMARY KEY,
  audit_id      INTEGER NOT NULL UNIQUE,
  previous_hash TEXT NOT NULL,
  hash          TEXT NOT NULL,
  sealed_at     TEXT NOT NULL
);

CREATE TRIGGER audit_log_unsealed AFTER INSERT ON audit_log BEGIN
  INSERT INTO audit_unsealed VALUES (NEW.id);
END;

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'the table audit_log is immutable: UPDATE is refused');
END;
CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'the table audit_log is immutable: DELETE is refused');
END;
CREATE TRIGGER audit_seal_no_update BEFORE UPDATE ON audit_seal BEGIN
  SELECT RAISE(ABORT, 'the table audit_seal is immutable: UPDATE is refused');
END;
CREATE TRIGGER audit_seal_no_delete BEFORE DELETE ON audit_seal BEGIN
  SELECT RAISE(ABORT, 'the table audit_seal is immutable: DELETE is refused');
END;

-- INSERT OR REPLACE removes rows without asking the triggers for DELETE.
CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id OR event_id = NEW.event_id) BEGIN
  SELECT RAISE(ABORT, 'the table audit_log is immutable: the row is there');
END;
CREATE TRIGGER audit_seal_no_replace BEFORE INSERT ON audit_seal
WHEN EXISTS (SELECT 1 FROM audit_seal WHERE sequence = NEW.sequence OR audit_id = NEW.audit_id)
BEGIN
  SELECT RAISE(ABORT, 'the table audit_seal is immutable: the row is there');
END;
