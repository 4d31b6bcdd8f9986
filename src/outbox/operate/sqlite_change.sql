UPDATE $table SET $change
WHERE $position IN (
  SELECT $position FROM $table
  WHERE $filter AND $eligible AND $position > $8 AND $position <= $9
  ORDER BY $position LIMIT $10)
RETURNING $position
