-- One acquire of a name that is free, without a function around it: what is asked most. Gives no
-- row, and has written nothing, if there is anything else to it; see baton.quick for the why.
INSERT INTO baton.lock AS l (key, grant_id, token, place, since, expires, ttl, at_least_for, mode,
                             predicate, owner, channel, metadata)
SELECT $1, $2, nextval('baton.counter'), 0, n.now_us,
       n.now_us + greatest($4, $5) * 1000, $4, $5, $3, $7, $8, $9, $10::jsonb
FROM (SELECT coalesce($11, (date_part('epoch', clock_timestamp()) * 1000000)::bigint) AS now_us) n
WHERE $6 = pg_sequence_last_value('baton.schema_version')
  AND NOT EXISTS (
    SELECT FROM baton.lock b WHERE b.key = $1
      AND (b.expires > n.now_us OR b.crowded OR b.waiting OR b.entombed IS NOT NULL))
ON CONFLICT (key) DO UPDATE
  SET grant_id = excluded.grant_id, token = nextval('baton.counter'), place = 0,
      since = excluded.since, expires = excluded.expires, ttl = excluded.ttl,
      at_least_for = excluded.at_least_for, mode = excluded.mode, state = 0, revoked = false,
      reason = '', predicate = excluded.predicate, owner = excluded.owner,
      channel = excluded.channel, metadata = excluded.metadata, if_below = NULL,
      set_ordinal = NULL, set_text = NULL
  WHERE l.expires <= excluded.since AND NOT l.crowded AND NOT l.waiting AND l.entombed IS NULL
RETURNING l.token, l.note_ordinal, l.note_text
