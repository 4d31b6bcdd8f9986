-- Where the rows of a look begin, for looks with many pages: so that the pages need not step over
-- all that was sent in the last days. $1 lanes, $2 the snapshot of the look before, $3 its own.
SELECT f.lane, pg_catalog.min(f.position) FROM (
  SELECT e.lane, e.position FROM $schema.outbox_events e
  WHERE e.xid >= pg_catalog.pg_snapshot_xmax($2::pg_snapshot)
    AND e.xid < pg_catalog.pg_snapshot_xmax($3::pg_snapshot) AND e.lane = ANY ($1::smallint[])
  UNION ALL
  SELECT e.lane, e.position FROM $schema.outbox_events e
  WHERE e.xid = ANY (ARRAY(SELECT pg_catalog.pg_snapshot_xip($2::pg_snapshot)))
    AND e.lane = ANY ($1::smallint[])
) f
GROUP BY f.lane
