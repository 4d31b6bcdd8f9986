-- A fence for the data of this database, whatever store the locks are in. Harmless to run again.
--
--   BEGIN;
--   SELECT baton_fence('DEFAULT:report:2026-11', 'X', 42);   -- first in the transaction
--   …                                                        -- write
--   COMMIT;
--
-- It fails with SQLSTATE BT001 if somebody newer, whose hold cannot stand beside this one, has
-- been here. The row stays locked until the commit, so nobody newer can come in between: a holder
-- that stops before its COMMIT makes its successor wait, and one that comes late is refused.
--
-- Whoever may execute the function may use it; it works with the rights of who installed it.

CREATE SCHEMA IF NOT EXISTS baton_fence;

-- The highest token seen of each mode, in the order IS IX S U SIX X.
CREATE TABLE IF NOT EXISTS baton_fence.seen (
  name   text COLLATE "C" PRIMARY KEY,
  tokens bigint[] NOT NULL CHECK (cardinality(tokens) = 6)
) WITH (fillfactor = 80);

CREATE OR REPLACE FUNCTION public.baton_fence(name text, mode text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  -- Which modes cannot stand beside mode i: the matrix of src/core/mode.cc.
  clashes CONSTANT integer[] := '{32,60,50,58,62,63}';
  number  integer := coalesce(
    array_position('{is,ix,s,u,six,x}'::text[], lower(mode)),
    array_position('{is,intent,shared,update,six,exclusive}'::text[], lower(mode)));
  nobody  CONSTANT bigint[] := '{0,0,0,0,0,0}';
  before  bigint[];
  newest  bigint;
BEGIN
  IF number IS NULL THEN
    RAISE EXCEPTION 'unknown lock mode %', quote_nullable(mode) USING ERRCODE = '22023';
  END IF;
  IF name IS NULL OR token IS NULL OR token <= 0 THEN
    RAISE EXCEPTION 'a fence takes a name and a token' USING ERRCODE = '22023';
  END IF;
  -- Makes the row or locks it, then looks at it: in this order nothing can change in between.
  INSERT INTO baton_fence.seen AS s VALUES (name, nobody)
    ON CONFLICT ON CONSTRAINT seen_pkey DO UPDATE SET tokens = s.tokens WHERE false;
  SELECT s.tokens INTO before FROM baton_fence.seen s WHERE s.name = baton_fence.name;
  SELECT max(t.token) INTO newest FROM unnest(before) WITH ORDINALITY t (token, i)
    WHERE (clashes[number] >> (t.i::integer - 1)) & 1 = 1;
  -- Whoever may not use a schema may not even ask whether there is such a table in it.
  IF newest <= token AND has_schema_privilege(to_regnamespace('baton'), 'USAGE') THEN
    IF has_table_privilege(to_regclass('baton.lock'), 'SELECT') THEN
      -- A lock row keeps its last token when it is released.
      newest := greatest(newest, (
        SELECT max(h.token) FROM (
          SELECT l.token, l.mode FROM baton.lock l WHERE l.key = baton_fence.name
          UNION ALL
          SELECT o.token, o.mode FROM baton.holding o WHERE o.key = baton_fence.name) h
        WHERE (clashes[number] >> h.mode) & 1 = 1));
    END IF;
  END IF;
  IF newest <= token AND has_schema_privilege(to_regnamespace('baton_advisory'), 'USAGE') THEN
    IF has_table_privilege(to_regclass('baton_advisory.term'), 'SELECT') THEN
      newest := greatest(newest, (
        SELECT max(t.token) FROM baton_advisory.term t
        WHERE t.key = baton_fence.name AND (clashes[number] >> t.mode) & 1 = 1));
    END IF;
  END IF;
  IF newest > token THEN
    RAISE EXCEPTION 'fenced: token % of % is older than %', token, name, newest
      USING ERRCODE = 'BT001';
  END IF;
  IF before[number] < token THEN
    before[number] := token;
    UPDATE baton_fence.seen s SET tokens = before WHERE s.name = baton_fence.name;
  END IF;
END $$;
