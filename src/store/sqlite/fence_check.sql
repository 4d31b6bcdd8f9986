-- First in the transaction that writes (BEGIN IMMEDIATE … COMMIT), with ?1 the lease as in
-- $BATON_FENCE. Rows: go on. No row: somebody newer has been here; roll back. Nothing of a refused
-- lease is recorded. The write lock that this takes is kept until the commit, so nobody newer can
-- come between the check and the writes that follow it.
WITH
  entry AS (
    SELECT value ->> 'name' AS name, value ->> 'mode' AS mode, value ->> 'token' AS token,
           json_type(value, '$.name') AS name_type, json_type(value, '$.token') AS token_type
    -- SQLite ends a text at a NUL, and would take the name or token before it.
    FROM json_each(iif(json_type(?1) = 'array' AND instr(?1, '\u0000') = 0, ?1, '[]'))),
  ask AS (
    SELECT iif(name_type = 'text', name, '') AS name, coalesce(mode, '') AS mode,
           -- Digits only: CAST alone would take the 4 of '4.5' and the 42 of '42x'.
           iif(token_type IN ('text', 'integer') AND token GLOB '[1-9]*'
               AND token NOT GLOB '*[^0-9]*' AND length(token) <= 19,
               CAST(token AS INTEGER), 0) AS token
    FROM entry),
  seen AS (
    SELECT ask.name AS name,
           max(max(iif(mode = 'IS', token, 0)), coalesce(is_token, 0)) AS is_token,
           max(max(iif(mode = 'IX', token, 0)), coalesce(ix_token, 0)) AS ix_token,
           max(max(iif(mode = 'S', token, 0)), coalesce(s_token, 0)) AS s_token,
           max(max(iif(mode = 'U', token, 0)), coalesce(u_token, 0)) AS u_token,
           max(max(iif(mode = 'SIX', token, 0)), coalesce(six_token, 0)) AS six_token,
           max(max(iif(mode = 'X', token, 0)), coalesce(x_token, 0)) AS x_token
    FROM ask LEFT JOIN baton_fence AS before ON before.name = ask.name
    GROUP BY ask.name)
REPLACE INTO baton_fence (name, is_token, ix_token, s_token, u_token, six_token, x_token)
SELECT name, is_token, ix_token, s_token, u_token, six_token, x_token FROM seen
WHERE NOT EXISTS (
  SELECT 1 FROM ask JOIN seen ON seen.name = ask.name
  WHERE ask.name = '' OR length(CAST(ask.name AS BLOB)) > 1024
     OR (SELECT count(*) FROM ask) > 1024 OR token NOT BETWEEN 1 AND 4611686018427387904
     OR mode NOT IN ('IS', 'IX', 'S', 'U', 'SIX', 'X')
     -- Only the modes that cannot be held beside this one can have overtaken it.
     OR token < CASE mode
       WHEN 'IS' THEN x_token
       WHEN 'IX' THEN max(s_token, u_token, six_token, x_token)
       WHEN 'S' THEN max(ix_token, six_token, x_token)
       WHEN 'U' THEN max(ix_token, u_token, six_token, x_token)
       WHEN 'SIX' THEN max(ix_token, s_token, u_token, six_token, x_token)
       ELSE max(is_token, ix_token, s_token, u_token, six_token, x_token)
     END)
RETURNING 1;
