-- What users were told, and want to be told, in SQLite: postgres_tables.sql. Times are RFC 3339
-- text in UTC.

CREATE TABLE notification_preferences (
  user_id    TEXT NOT NULL,
  channel    TEXT NOT NULL,
  enabled    INTEGER NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (user_id, channel)
) WITHOUT ROWID;

CREATE TABLE notification_history (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id        TEXT NOT NULL,
  channel         TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  document_id     TEXT NOT NULL,
  idempotency_key TEXT NOT NULL UNIQUE,
  subject         TEXT NOT NULL,
  correlation_id  TEXT,
  sent_at         TEXT NOT NULL,
  UNIQUE (event_id, channel, user_id)
);
CREATE INDEX idx_notification_history_correlation_id ON notification_history (correlation_id);
CREATE INDEX idx_notification_history_document_id ON notification_history (document_id, id);
CREATE INDEX idx_notification_history_user_id ON notification_history (user_id, id);
