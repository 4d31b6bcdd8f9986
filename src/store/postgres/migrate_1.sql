-- Version 1 of the schema. Runs in one transaction, as a role that may create a schema.
--
-- A role that only locks needs no more than
--
--   GRANT USAGE ON SCHEMA baton TO app;
--   GRANT SELECT ON ALL TABLES IN SCHEMA baton TO app;
--   GRANT INSERT, UPDATE, DELETE ON baton.lock, baton.holder, baton.waiter TO app;
--   GRANT USAGE ON SEQUENCE baton.counter TO app;
--   GRANT SELECT ON SEQUENCE baton.schema_version TO app;
--
-- and one that changes the policy also UPDATE ON SEQUENCE baton.schema_version. The functions run
-- with the rights of their caller, so they give nobody more than that; but for tell_version.
--
-- Relations and types are named with their schema. Functions and operators of the server are not:
-- a connection of Baton has no other schema than pg_catalog in its search_path.
--
-- Times are microseconds since 1970 by clock_timestamp(), spans are milliseconds. Modes are 0 IS,
-- 1 IX, 2 S, 3 U, 4 SIX, 5 X; states are 0 held, 1 handed to a waiter that has not claimed it, 2
-- released before its at-least-for time was over.

CREATE SCHEMA baton;

CREATE TABLE baton.meta (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  integer NOT NULL,
  changed  timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO baton.meta (version) VALUES (0);

-- Tokens and turns. Drawn under the row lock of the name, so they only ever grow for a name; one
-- sequence for all names, so that a name may be forgotten and come back.
CREATE SEQUENCE baton.counter AS bigint CACHE 1;

-- A copy of the version of the lock schema: the note of BATON:schema decides, but a sequence is
-- read in a tenth of the time. A request that finds another version here than its own reads the
-- note. A sequence does not roll back, so a change of the note leaves it without a value, and the
-- next session that locks the row of BATON:schema sets it: a change that was rolled back costs
-- only time. Every sweep does that too, since the client that changed the note may have died.
CREATE SEQUENCE baton.schema_version AS bigint MINVALUE 0 CACHE 1;
SELECT setval('baton.schema_version', 0);

-- One row a name, with its first holder. As long as there is no other holder and nobody waits,
-- this row alone decides. That matters because a statement that has waited for a row lock reads
-- that row again, but no other row.
--
-- Only the key is indexed, and pages keep free space, so that updates stay on their page (HOT).
CREATE TABLE baton.lock (
  key            text COLLATE "C" PRIMARY KEY,
  grant_id       uuid,                         -- null: no holder here
  token          bigint   NOT NULL DEFAULT 0,  -- stays after the release, for the fence
  place          bigint   NOT NULL DEFAULT 0,  -- the order in which holders came; 0: the first
  since          bigint   NOT NULL DEFAULT 0,  -- when the last holder came
  expires        bigint   NOT NULL DEFAULT 0,
  ttl            bigint   NOT NULL DEFAULT 0,
  at_least_for   bigint   NOT NULL DEFAULT 0,
  note_ordinal   bigint   NOT NULL DEFAULT 0,
  mode           smallint NOT NULL DEFAULT 0,
  state          smallint NOT NULL DEFAULT 0,
  revoked        boolean  NOT NULL DEFAULT false,
  crowded        boolean  NOT NULL DEFAULT false,  -- baton.holder has rows of this name
  waiting        boolean  NOT NULL DEFAULT false,  -- baton.waiter has rows of this name
  predicate      text     NOT NULL DEFAULT '',
  owner          text     NOT NULL DEFAULT '',
  channel        text     NOT NULL DEFAULT '',     -- whom to NOTIFY
  reason         text     NOT NULL DEFAULT '',
  note_text      text     NOT NULL DEFAULT '',
  metadata       jsonb,
  if_below       bigint,                           -- these three: to do when a hand-off is claimed
  set_ordinal    bigint,
  set_text       text,
  entombed       uuid[],                           -- acquires that must not take effect any more
  entombed_until bigint[]
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The second and further holders of a name.
CREATE TABLE baton.holder (
  key          text COLLATE "C" NOT NULL,
  grant_id     uuid     NOT NULL,
  mode         smallint NOT NULL,
  state        smallint NOT NULL,
  token        bigint   NOT NULL,
  place        bigint   NOT NULL,
  since        bigint   NOT NULL,
  expires      bigint   NOT NULL,
  ttl          bigint   NOT NULL,
  at_least_for bigint   NOT NULL,
  revoked      boolean  NOT NULL,
  reason       text     NOT NULL,
  predicate    text     NOT NULL,
  owner        text     NOT NULL,
  channel      text     NOT NULL,
  metadata     jsonb,
  if_below     bigint,
  set_ordinal  bigint,
  set_text     text,
  PRIMARY KEY (key, grant_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Waiters. Class 0 are holders that wait for a stronger mode, class 1 all others; a turn below
-- zero has been put ahead of the others by a transfer.
CREATE TABLE baton.waiter (
  key          text COLLATE "C" NOT NULL,
  class        smallint NOT NULL,
  turn         bigint   NOT NULL,
  grant_id     uuid     NOT NULL,
  mode         smallint NOT NULL,
  ttl          bigint   NOT NULL,
  at_least_for bigint   NOT NULL,
  handoff      bigint   NOT NULL,
  stale        bigint   NOT NULL,  -- forgotten then, unless refreshed
  alone        boolean  NOT NULL,  -- waits for one name only, so it can be promoted
  predicate    text     NOT NULL,
  owner        text     NOT NULL,
  channel      text     NOT NULL,
  metadata     jsonb,
  if_below     bigint,
  set_ordinal  bigint,
  set_text     text,
  PRIMARY KEY (key, class, turn),
  UNIQUE (key, grant_id, class)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Every holder, wherever it is kept, in the shape of baton.holder. The expired ones too.
CREATE VIEW baton.holding AS
  SELECT key, grant_id, mode, state, token, place, since, expires, ttl, at_least_for, revoked,
         reason, predicate, owner, channel, metadata, if_below, set_ordinal, set_text
  FROM baton.lock WHERE grant_id IS NOT NULL
  UNION ALL
  SELECT key, grant_id, mode, state, token, place, since, expires, ttl, at_least_for, revoked,
         reason, predicate, owner, channel, metadata, if_below, set_ordinal, set_text
  FROM baton.holder;

-- baton::Request, as the functions pass it on. `flag` is `immediately` of a break and
-- `converting` of a cancel.
CREATE TYPE baton.request AS (
  ord integer, verb smallint, grant_id uuid, keys text[], modes smallint[], ttl bigint,
  ticket bigint, handoff bigint, at_least_for bigint, tombstone bigint, if_below bigint,
  set_ordinal bigint, set_text text, version bigint, predicate text, owner text, channel text,
  metadata jsonb, heir text, reason text, flag boolean
);

-- baton::Reply. An outcome of null means: not without the row locks.
CREATE TYPE baton.reply AS (
  ord integer, outcome smallint, tokens bigint[], note_ordinal bigint, note_text text,
  ends bigint,         -- when the first of those in the way goes by itself
  now_us bigint, message text, holders text, waiters text, waiting bigint, durable boolean
);
