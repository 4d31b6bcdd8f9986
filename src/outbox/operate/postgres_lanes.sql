-- What waits in each lane for its first attempt: what its relay may not have seen yet. Lanes that
-- no relay knows are there too, if somebody has written events to them without outbox_add. A
-- checkpoint counts on the terms of take_over in src/relay/look.cc.
SELECT l.lane, floor(extract(epoch FROM clock_timestamp() - l.updated_at) * 1000)::bigint,
       w.waiting, floor(extract(epoch FROM clock_timestamp() - w.oldest) * 1000)::bigint
FROM $schema.outbox_lane l CROSS JOIN LATERAL (
  SELECT count(*) AS waiting, min(e.created_at) AS oldest
  FROM $schema.outbox_events e
  WHERE e.lane = l.lane AND e.status = 'PENDING' AND e.next_retry_at IS NULL
    AND e.xid >= CASE
      WHEN l.system_identifier = (SELECT system_identifier FROM pg_control_system())
        AND pg_snapshot_xmax(l.seen) <= pg_snapshot_xmax(pg_current_snapshot())
      THEN pg_snapshot_xmin(l.seen) ELSE '0'::xid8 END) w
UNION ALL
SELECT e.lane, NULL, count(*),
       floor(extract(epoch FROM clock_timestamp() - min(e.created_at)) * 1000)::bigint
FROM $schema.outbox_events e
WHERE (e.lane < 0 OR e.lane > 15) AND e.status = 'PENDING'
GROUP BY e.lane
ORDER BY 1
