-- What `warehouse count` keeps: a row for each event that it has counted. No unique key: an event
-- that has two effects must show.

CREATE TABLE IF NOT EXISTS warehouse_effect (
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  type TEXT NOT NULL,
  source_id TEXT NOT NULL,
  counted_by TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS warehouse_effect_source ON warehouse_effect (type, source_id);
