-- What the warehouse keeps besides its outbox: how far each observer has come, and its polls.

CREATE TABLE IF NOT EXISTS warehouse_observer (
  type TEXT NOT NULL,
  name TEXT NOT NULL,                                -- the channel of the source that it polls
  active BIGINT NOT NULL DEFAULT 1,
  cursor_kind TEXT NOT NULL,                         -- what positions are: time or xid
  last_polled_timestamp BIGINT NOT NULL DEFAULT 0,   -- by the source's clock, µs since 1970
  complete_below BIGINT NOT NULL DEFAULT 0,          -- every row before this position is published
  in_pass BIGINT NOT NULL DEFAULT 0,                 -- a pass over the rows after it goes on
  pass_horizon BIGINT NOT NULL DEFAULT 0,            -- complete_below at its end
  page_position BIGINT NOT NULL DEFAULT 0,           -- how far it is
  page_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (type, name)
);

-- What is published although it is not before complete_below: it will be read again.
CREATE TABLE IF NOT EXISTS warehouse_seen (
  type TEXT NOT NULL,
  observer TEXT NOT NULL,
  id TEXT NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (type, observer, id)
);
CREATE INDEX IF NOT EXISTS warehouse_seen_position ON warehouse_seen (type, observer, position);

CREATE TABLE IF NOT EXISTS warehouse_poll (
  type TEXT NOT NULL,
  token BIGINT NOT NULL,
  node TEXT NOT NULL,
  fire BIGINT NOT NULL,
  started BIGINT NOT NULL,                           -- µs since 1970
  ended BIGINT NOT NULL DEFAULT 0,
  outcome TEXT NOT NULL DEFAULT 'unfinished',        -- then ok or failed
  source_queries BIGINT NOT NULL DEFAULT 0,
  source_rows BIGINT NOT NULL DEFAULT 0,
  events BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (type, token)
);
