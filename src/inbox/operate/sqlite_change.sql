UPDATE $table SET $change
WHERE arrival IN (
  SELECT arrival FROM $table
  WHERE $filter AND $eligible AND arrival > $8 AND arrival <= $9
  ORDER BY arrival LIMIT $10)
RETURNING arrival
