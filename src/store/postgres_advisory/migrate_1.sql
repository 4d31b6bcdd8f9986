-- Version 1 of the schema. Run in one transaction, by a role that may create a schema.
--
-- The locks themselves are advisory locks of sessions: nothing here decides who holds one. These
-- tables remember what a session cannot: tokens, notes, who it is, and what must still be waited
-- for when a session has gone.
--
-- A role that only locks needs no more than
--
--   GRANT USAGE ON SCHEMA baton_advisory TO app;
--   GRANT SELECT ON ALL TABLES IN SCHEMA baton_advisory TO app;
--   GRANT INSERT, UPDATE, DELETE ON baton_advisory.term, baton_advisory.note, baton_advisory.server,
--     baton_advisory.waiter TO app;
--   GRANT USAGE ON SEQUENCE baton_advisory.counter TO app;
--
-- Times are microseconds since 1970 by clock_timestamp(), spans are milliseconds. Modes are 2
-- shared and 5 exclusive.

CREATE SCHEMA baton_advisory;

CREATE TABLE baton_advisory.meta (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  integer NOT NULL,
  changed  timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO baton_advisory.meta (version) VALUES (0);

-- Tokens. Drawn by a session that has the lock and committed before it is granted.
CREATE SEQUENCE baton_advisory.counter AS bigint CACHE 1;

CREATE TABLE baton_advisory.note (
  key     text COLLATE "C" PRIMARY KEY,
  ordinal bigint NOT NULL DEFAULT 0,
  text    text   NOT NULL DEFAULT ''
);

-- One row a grant. It counts while its session has the lock; until keep_until; and, if the server
-- has crashed since it was written, until its holder cannot trust it any more.
CREATE TABLE baton_advisory.term (
  lock_key     bigint   NOT NULL,
  key          text COLLATE "C" NOT NULL,
  grant_id     uuid     NOT NULL,
  mode         smallint NOT NULL,
  token        bigint   NOT NULL,
  pid          integer  NOT NULL,            -- of the session; 0 once it has let go
  server       uuid     NOT NULL,            -- baton_advisory.server when it was written
  ttl          bigint   NOT NULL,
  at_least_for bigint   NOT NULL,
  since        bigint   NOT NULL,
  keep_until   bigint   NOT NULL,
  released     boolean  NOT NULL DEFAULT false,
  revoked      boolean  NOT NULL DEFAULT false,
  reason       text     NOT NULL DEFAULT '',
  predicate    text     NOT NULL,
  owner        text     NOT NULL,
  metadata     jsonb,
  PRIMARY KEY (lock_key, key, grant_id)
) WITH (fillfactor = 80);
CREATE INDEX term_key ON baton_advisory.term (key);

-- The server since its last start. Unlogged, so a crash empties it: that is how one is noticed.
CREATE UNLOGGED TABLE baton_advisory.server (
  one     boolean PRIMARY KEY DEFAULT true CHECK (one),
  id      uuid        NOT NULL,
  started timestamptz NOT NULL,
  began   bigint      NOT NULL  -- no session from before it lived longer than this
);

-- Who waits, for people to see: it counts while its session waits for the lock.
CREATE UNLOGGED TABLE baton_advisory.waiter (
  pid       integer PRIMARY KEY,
  lock_key  bigint   NOT NULL,
  key       text COLLATE "C" NOT NULL,
  grant_id  uuid     NOT NULL,
  mode      smallint NOT NULL,
  predicate text     NOT NULL,
  owner     text     NOT NULL,
  since     bigint   NOT NULL
);
CREATE INDEX waiter_key ON baton_advisory.waiter (key);
