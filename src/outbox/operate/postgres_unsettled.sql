-- What keeps a slot from being emptied; no row if nothing does. $1, in milliseconds since 1970:
-- what was added later is to be kept.
SELECT CASE WHEN status IN ('PENDING', 'FAILED') THEN 'has events that are ' || status
            ELSE 'has events younger than the retention' END
FROM $slot
WHERE status IN ('PENDING', 'FAILED')
   OR created_at > timestamptz '1970-01-01 00:00:00+00' + $1::bigint * interval '1 millisecond'
LIMIT 1
