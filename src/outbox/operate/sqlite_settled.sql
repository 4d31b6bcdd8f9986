-- As on PostgreSQL; the positions say how many rows there are at most.
SELECT CASE WHEN small.fits THEN (SELECT count(*) FROM main.outbox_events WHERE status = 'SENT')
            ELSE (SELECT count(*) FROM main.outbox_events) END,
       CASE WHEN small.fits THEN
         (SELECT count(*) FROM main.outbox_events WHERE status = 'DISCARDED') END,
       CASE WHEN small.fits THEN (SELECT count(*) FROM main.outbox_events
         WHERE status = 'FAILED' AND next_retry_at IS NULL) END,
       NOT small.fits
FROM (SELECT coalesce((SELECT max(position) - min(position) FROM main.outbox_events), 0) * 1000
             <= $1 AS fits) small
