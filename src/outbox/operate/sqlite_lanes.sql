SELECT l.lane, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - l.updated_at,
       (SELECT count(*) FROM main.outbox_events
        WHERE status = 'PENDING' AND next_retry_at IS NULL),
       CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) -
         (SELECT created_at FROM main.outbox_events
          WHERE status = 'PENDING' AND next_retry_at IS NULL ORDER BY position LIMIT 1)
FROM main.outbox_lane l ORDER BY l.lane
