-- Gets: names that nobody waits for and that have one holder at most, who stands in their row. The
-- others give no row; a name without a row is free and has no note.
SELECT g.key, coalesce(l.note_ordinal, 0), coalesce(l.note_text, ''),
       CASE WHEN l.expires > n.now_us THEN '[' || baton.shown_lock(l) || ']' END, NULL::text,
       0::bigint, n.now_us
FROM (SELECT :now AS now_us) n, unnest(:key[]) g (key) LEFT JOIN baton.lock l ON l.key = g.key
WHERE l.key IS NULL OR NOT l.crowded AND NOT l.waiting
