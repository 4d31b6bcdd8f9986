-- A row that somebody else is changing right now is passed over.
WITH chosen AS (
  SELECT lane, $position FROM $table
  WHERE $filter AND $eligible AND $position > $8::bigint AND $position <= $9::bigint
  ORDER BY $position LIMIT $10::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE $table e SET $change
FROM chosen c WHERE e.lane = c.lane AND e.$position = c.$position
RETURNING e.$position
