-- A broker in one file. Version 1.

CREATE TABLE topology (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  version INTEGER NOT NULL  -- counts declarations that changed something
);
INSERT INTO topology VALUES (1, 0);

CREATE TABLE exchange (
  name TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  alternate TEXT NOT NULL
) WITHOUT ROWID;

-- Its messages have the numbers from first to last, but for those that are gone. Those below
-- next_fresh have been delivered at least once and are in `delivery`; the others wait for their
-- first delivery.
CREATE TABLE queue (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  dead_letters INTEGER NOT NULL,
  single_active INTEGER NOT NULL,
  max_length INTEGER NOT NULL,
  next_fresh INTEGER NOT NULL DEFAULT 1,
  last INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 0  -- the consumer of a single_active queue; 0: none
);

CREATE TABLE binding (
  exchange TEXT NOT NULL,
  pattern TEXT NOT NULL,
  queue TEXT NOT NULL,
  to_exchange TEXT NOT NULL,
  PRIMARY KEY (exchange, pattern, queue, to_exchange)
) WITHOUT ROWID;

-- One row a queue that has the message, never changed. The place is the id of the queue in the high
-- bits and the number of the message in the low 40, so that this needs no index.
CREATE TABLE message (
  place INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  exchange TEXT NOT NULL,
  routing_key TEXT NOT NULL,
  content_type TEXT NOT NULL,
  headers BLOB NOT NULL,
  body BLOB NOT NULL
);

-- The messages that were delivered and are not settled: in the hands of a consumer, or with
-- consumer 0, given back and waiting for the next one.
CREATE TABLE delivery (
  consumer INTEGER NOT NULL,
  place INTEGER NOT NULL,
  count INTEGER NOT NULL,  -- of earlier deliveries
  PRIMARY KEY (consumer, place)
) WITHOUT ROWID;

-- The number of a consumer is never used twice: a consumer that was given up cannot settle.
CREATE TABLE consumer (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL,
  slot INTEGER NOT NULL  -- in the presence file
);
