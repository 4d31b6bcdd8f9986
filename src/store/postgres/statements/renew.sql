-- Renewals. Skips rows that another session has locked: one stuck row must not hold up a thousand
-- renewals.
UPDATE baton.lock l SET expires = greatest(l.expires, (SELECT :now) + l.ttl * 1000)
FROM (SELECT o.ctid AS row_id
      FROM unnest(:key[], :grant_id[]) r (key, grant_id)
      JOIN baton.lock o ON o.key = r.key AND o.grant_id = r.grant_id
      WHERE o.expires > (SELECT :now) AND o.state = 0 AND NOT o.revoked
      FOR NO KEY UPDATE OF o SKIP LOCKED) f
WHERE l.ctid = f.row_id
RETURNING l.key, l.token, l.note_ordinal, l.note_text
