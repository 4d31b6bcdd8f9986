-- Whether the sequence of the positions is behind a position that is used, as in a logical copy,
-- which has no sequences: then two events get one. Only known with a right to the sequence. $1 lane.
SELECT s.last, e.position FROM (
  SELECT CASE WHEN pg_catalog.has_sequence_privilege(q.name, 'USAGE, SELECT')
              THEN coalesce(pg_catalog.pg_sequence_last_value(q.name::regclass), 0) END AS last
  FROM pg_catalog.pg_get_serial_sequence('$schema.outbox_events', 'position') AS q (name)
) s, (
  SELECT pg_catalog.max(position) AS position FROM $schema.outbox_events WHERE lane = $1::smallint
) e
WHERE e.position > s.last
