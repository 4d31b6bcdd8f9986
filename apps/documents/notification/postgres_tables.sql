-- What users were told, and what they want to be told, in PostgreSQL. sqlite_tables.sql has the
-- same columns.

-- A channel without a row is switched on.
CREATE TABLE $schema.notification_preferences (
  user_id    text NOT NULL,
  channel    text NOT NULL,
  enabled    integer NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, channel)
);

CREATE TABLE $schema.notification_history (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id        uuid NOT NULL,
  channel         text NOT NULL,
  user_id         text NOT NULL,
  event_type      text NOT NULL,
  document_id     text NOT NULL,
  idempotency_key text NOT NULL UNIQUE,
  subject         text NOT NULL,
  correlation_id  varchar(255),
  sent_at         timestamptz NOT NULL,
  UNIQUE (event_id, channel, user_id)
);
CREATE INDEX idx_notification_history_correlation_id
  ON $schema.notification_history (correlation_id);
CREATE INDEX idx_notification_history_document_id ON $schema.notification_history (document_id, id);
CREATE INDEX idx_notification_history_user_id ON $schema.notification_history (user_id, id);
