-- A lone acquire of a name that was busy when it was last seen: tells who holds it in X. Any other
-- case gives no row. It costs no row lock, no transaction id and no WAL, and plain columns cost the
-- server less than the JSON of baton.shown_lock.
SELECT :now AS now_us, b.grant_id, b.token, b.state, b.since, b.expires, b.ttl, b.revoked, b.reason,
       b.predicate, b.owner, b.metadata::text
FROM baton.lock b
WHERE b.key = :key AND b.mode = 5 AND b.expires > :now AND b.grant_id <> :grant_id
  AND b.entombed IS NULL
  AND :schema_version = pg_sequence_last_value('baton.schema_version')
