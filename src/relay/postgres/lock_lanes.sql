-- First in the transaction that marks: keeps a newer owner from taking over until it has ended. A
-- mark that a crash of the server forgets is made again, so the commit need not wait for the disk.
-- $1 lanes, $2 their tokens.
SELECT l.lane, pg_catalog.set_config('synchronous_commit', 'off', true)
FROM unnest($1::smallint[], $2::bigint[]) AS m (lane, token)
JOIN $schema.outbox_lane l ON l.lane = m.lane AND l.token = m.token
ORDER BY l.lane
FOR NO KEY UPDATE OF l
