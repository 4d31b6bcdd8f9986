-- What of a Filter is not given is NULL; lists are JSON.
($1 IS NULL OR event_id IN (SELECT value FROM json_each($1)))
AND ($2 IS NULL OR status IN (SELECT value FROM json_each($2)))
AND ($3 IS NULL OR type = $3)
AND ($4 IS NULL OR aggregate_id = $4)
AND ($5 IS NULL OR instr(lower(last_error), lower($5)) > 0)
AND ($6 IS NULL OR created_at < CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - $6)
AND ($7 IS NULL OR $consumer = $7)
