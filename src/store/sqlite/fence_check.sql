-- First in the transaction that writes (BEGIN IMMEDIATE … COMMIT), with ?1 the name, ?2 the mode
-- ('IS', 'IX', 'S', 'U', 'SIX' or 'X') and ?3 the token. A row: go on. No row: somebody newer has
-- been here; roll back. The write lock that this takes is kept until the commit, so nobody newer
-- can come between the check and the writes that follow it.
INSERT INTO baton_fence (name, is_token, ix_token, s_token, u_token, six_token, x_token)
SELECT ?1,
       iif(?2 = 'IS', ?3, 0), iif(?2 = 'IX', ?3, 0), iif(?2 = 'S', ?3, 0),
       iif(?2 = 'U', ?3, 0), iif(?2 = 'SIX', ?3, 0), iif(?2 = 'X', ?3, 0)
WHERE ?2 IN ('IS', 'IX', 'S', 'U', 'SIX', 'X')
ON CONFLICT (name) DO UPDATE SET
  is_token = max(is_token, excluded.is_token),
  ix_token = max(ix_token, excluded.ix_token),
  s_token = max(s_token, excluded.s_token),
  u_token = max(u_token, excluded.u_token),
  six_token = max(six_token, excluded.six_token),
  x_token = max(x_token, excluded.x_token)
-- Only the modes that cannot be held beside this one can have overtaken it.
WHERE ?3 >= CASE ?2
  WHEN 'IS' THEN x_token
  WHEN 'IX' THEN max(s_token, u_token, six_token, x_token)
  WHEN 'S' THEN max(ix_token, six_token, x_token)
  WHEN 'U' THEN max(ix_token, u_token, six_token, x_token)
  WHEN 'SIX' THEN max(ix_token, s_token, u_token, six_token, x_token)
  ELSE max(is_token, ix_token, s_token, u_token, six_token, x_token)
END
RETURNING 1;
