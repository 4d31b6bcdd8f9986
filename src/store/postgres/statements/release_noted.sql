-- Releases that write a note, of names that nobody waits for: as release_many.sql, but they wait
-- for the disk, because a note must survive a crash.
UPDATE baton.lock l
SET grant_id = NULL, expires = 0, since = (SELECT :now),
    note_ordinal = coalesce(r.ordinal, l.note_ordinal),
    note_text = coalesce(r.text, l.note_text)
FROM unnest(:key[], :grant_id[], :note_ordinal[], :note_text[]) r (key, grant_id, ordinal, text)
WHERE l.key = r.key AND l.grant_id = r.grant_id AND NOT l.waiting
  AND (l.state = 1 OR l.state = 0 AND l.since + l.at_least_for * 1000 <= (SELECT :now))
  AND l.expires > (SELECT :now)
RETURNING l.key, NULL::bigint
