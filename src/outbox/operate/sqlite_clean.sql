-- Positions grow with time: the search ends at the first event that is young enough to stay. $1: in
-- milliseconds since 1970.
DELETE FROM main.outbox_events WHERE position IN (
  SELECT position FROM main.outbox_events
  WHERE status IN ('SENT', 'DISCARDED') AND position < coalesce(
    (SELECT position FROM main.outbox_events WHERE created_at >= $1 ORDER BY position LIMIT 1),
    9223372036854775807)
  ORDER BY position LIMIT $2)
