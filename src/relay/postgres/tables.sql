-- Where the outbox is, and what tells it from all others: its cluster, database and table.
SELECT pg_catalog.quote_ident(n.nspname), s.system_identifier::text,
       pg_catalog.current_database()::text, d.oid::bigint, c.oid::bigint
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
CROSS JOIN pg_catalog.pg_control_system() s
WHERE c.oid = pg_catalog.to_regclass('outbox_events')
