-- A fence for the data of this database, whatever store the locks are in. Harmless to run again.
--
--   BEGIN;
--   SELECT public.baton_fence('[{"name":"DEFAULT:report:2026-11","mode":"X","token":"42"}]'::text);
--   …                                                        -- write
--   COMMIT;
--
-- The types are part of the name: without them, a function of the same name that somebody else may
-- have made in public could fit better, and be called instead.
--
-- It fails with SQLSTATE BT001 if somebody newer, whose hold cannot stand beside this one, has
-- been here. The rows stay locked until the commit, so nobody newer can come in between: a holder
-- that stops before its COMMIT makes its successor wait, and one that comes late is refused.
--
-- Roles need EXECUTE on the functions in public and no other right: they work with the rights of
-- the role that installed them. docs/fencing.md has the GRANT.

CREATE SCHEMA IF NOT EXISTS baton_fence;

-- The highest token seen of each mode, in the order IS IX S U SIX X.
CREATE TABLE IF NOT EXISTS baton_fence.seen (
  name   text COLLATE "C" PRIMARY KEY,
  tokens bigint[] NOT NULL CHECK (cardinality(tokens) = 6)
) WITH (fillfactor = 80);

-- Whether the fence may look at the tables of a lock store. It reads them with the rights of its
-- owner, which a view or a policy of somebody else could abuse: so only if their owner is that role
-- or can become it.
CREATE OR REPLACE FUNCTION baton_fence.may_look(store text, tables text[]) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT count(*) = cardinality($2) AND bool_and(
           has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AND
           pg_has_role(n.nspowner, current_user, 'MEMBER') AND
           pg_has_role(c.relowner, current_user, 'MEMBER'))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = ANY ($2)
$$;

-- One name after the other, in the order of their bytes: so no two writers wait for each other. An
-- error undoes all of them.
CREATE OR REPLACE FUNCTION baton_fence.pass(names text[], modes text[], tokens bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- Which modes cannot stand beside mode i: the matrix of src/core/mode.cc.
  clashes CONSTANT integer[] := '{32,60,50,58,62,63}';
  highest CONSTANT bigint := 4611686018427387904;
  locks   CONSTANT boolean := baton_fence.may_look('baton', '{lock,holder,holding}');
  terms   CONSTANT boolean := baton_fence.may_look('baton_advisory', '{term}');
  ask     record;
  own     bigint[];
  seen    bigint[];
  newest  bigint;
BEGIN
  FOR ask IN
    SELECT a.name, a.mode, a.token, coalesce(
             array_position('{is,ix,s,u,six,x}'::text[], lower(a.mode)),
             array_position('{is,intent,shared,update,six,exclusive}'::text[], lower(a.mode)))
             AS number
    FROM unnest(names, modes, tokens) a (name, mode, token)
    -- The newest first: who is overtaken by another one of this call is refused too.
    ORDER BY a.name COLLATE "C", a.token DESC
  LOOP
    IF ask.number IS NULL THEN
      RAISE EXCEPTION 'unknown lock mode %', quote_nullable(ask.mode) USING ERRCODE = '22023';
    END IF;
    IF ask.name IS NULL OR octet_length(ask.name) NOT BETWEEN 1 AND 1024 OR
       ask.token IS NULL OR ask.token NOT BETWEEN 1 AND highest THEN
      RAISE EXCEPTION 'a fence takes a name and a token from 1 to %', highest
        USING ERRCODE = '22023';
    END IF;
    own := '{0,0,0,0,0,0}';
    own[ask.number] := ask.token;
    -- Always a new version of the row, also when there is nothing new to record: a successor that
    -- waited for it at REPEATABLE READ must fail (40001), because its snapshot is older than what
    -- is committed here. A lock alone would let it pass.
    INSERT INTO baton_fence.seen AS s VALUES (ask.name, own)
      ON CONFLICT ON CONSTRAINT seen_pkey DO UPDATE
        SET tokens[ask.number] = greatest(s.tokens[ask.number], ask.token)
      RETURNING s.tokens INTO seen;
    SELECT max(t.token) INTO newest FROM unnest(seen) WITH ORDINALITY t (token, i)
      WHERE (clashes[ask.number] >> (t.i::integer - 1)) & 1 = 1;
    IF locks THEN
      -- A lock row keeps its last token when it is released.
      newest := greatest(newest, (
        SELECT max(h.token) FROM (
          SELECT l.token, l.mode FROM baton.lock l WHERE l.key = ask.name
          UNION ALL
          SELECT o.token, o.mode FROM baton.holding o WHERE o.key = ask.name) h
        WHERE (clashes[ask.number] >> h.mode) & 1 = 1));
    END IF;
    IF terms THEN
      newest := greatest(newest, (
        SELECT max(t.token) FROM baton_advisory.term t
        WHERE t.key = ask.name AND (clashes[ask.number] >> t.mode) & 1 = 1));
    END IF;
    IF newest > ask.token THEN
      RAISE EXCEPTION 'fenced: token % of % is older than %', ask.token, ask.name, newest
        USING ERRCODE = 'BT001';
    END IF;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION public.baton_fence(name text, mode text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM baton_fence.pass(ARRAY[name], ARRAY[mode], ARRAY[token]);
END $$;

-- All names and ancestors of a lease, as in $BATON_FENCE.
CREATE OR REPLACE FUNCTION public.baton_fence(lease text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  names  text[];
  modes  text[];
  tokens bigint[];
BEGIN
  IF octet_length(lease) > 1048576 THEN
    RAISE EXCEPTION 'a lease has at most 1 MiB' USING ERRCODE = '22023';
  END IF;
  -- A token in digits only, as every other fence reads it; one that is not becomes NULL, and is
  -- refused with the names that are none.
  SELECT array_agg(CASE jsonb_typeof(a.value -> 'name') WHEN 'string' THEN a.value ->> 'name' END),
         array_agg(a.value ->> 'mode'),
         array_agg(substring(
           CASE WHEN jsonb_typeof(a.value -> 'token') IN ('string', 'number')
                THEN a.value ->> 'token' END, '^[1-9][0-9]{0,18}$')::bigint)
    INTO names, modes, tokens
    FROM jsonb_array_elements(lease::jsonb) a;
  IF coalesce(cardinality(names), 0) NOT BETWEEN 1 AND 1024 THEN
    RAISE EXCEPTION 'a fence takes from 1 to 1024 names' USING ERRCODE = '22023';
  END IF;
  PERFORM baton_fence.pass(names, modes, tokens);
END $$;

REVOKE ALL ON SCHEMA baton_fence FROM PUBLIC;
REVOKE ALL ON TABLE baton_fence.seen FROM PUBLIC;
REVOKE ALL ON FUNCTION baton_fence.may_look(text, text[]), baton_fence.pass(text[], text[], bigint[]),
  public.baton_fence(text, text, bigint), public.baton_fence(text) FROM PUBLIC;

-- What another role owns, it can change: a function that runs with our rights must not depend on
-- it. All of this script is one transaction, so nothing of it stays.
DO $$
DECLARE
  other record;
BEGIN
  SELECT o.what, pg_get_userbyid(o.owner) AS owner INTO other FROM (
    SELECT 'schema baton_fence', n.nspowner FROM pg_namespace n WHERE n.nspname = 'baton_fence'
    UNION ALL
    SELECT 'table ' || c.oid::regclass, c.relowner FROM pg_class c
      WHERE c.relnamespace = 'baton_fence'::regnamespace
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure, p.proowner FROM pg_proc p
      WHERE p.pronamespace = 'baton_fence'::regnamespace OR
            (p.pronamespace = 'public'::regnamespace AND p.proname = 'baton_fence')
    ) o (what, owner)
    WHERE pg_get_userbyid(o.owner) <> current_user LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% belongs to the role %, not to %: install the fence as that role, or remove it',
      other.what, other.owner, current_user USING ERRCODE = '42501';
  END IF;
END $$;
