-- As add() does it, but exclusively and for the session. $1 lanes. All are tried.
SELECT pg_catalog.bool_and(
         pg_catalog.pg_try_advisory_lock('$schema.outbox_events'::regclass::oid::integer, m.lane))
FROM pg_catalog.unnest($1::integer[]) AS m (lane)
