-- Counts every row of a small table. To read all of a large one takes long: then the server's
-- estimate of all rows, as SENT.
SELECT CASE WHEN small.fits THEN (SELECT count(*) FROM $schema.outbox_events WHERE status = 'SENT')
            ELSE all_rows.estimate END,
       CASE WHEN small.fits THEN
         (SELECT count(*) FROM $schema.outbox_events WHERE status = 'DISCARDED') END,
       CASE WHEN small.fits THEN (SELECT count(*) FROM $schema.outbox_events
         WHERE status = 'FAILED' AND next_retry_at IS NULL) END,
       NOT small.fits
FROM (SELECT sum(pg_relation_size(c.oid)) AS bytes,
             sum(greatest(c.reltuples, 0))::bigint AS estimate
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = '$schema.outbox_events'::regclass) all_rows
CROSS JOIN LATERAL (SELECT all_rows.bytes <= $1::bigint AS fits) small
