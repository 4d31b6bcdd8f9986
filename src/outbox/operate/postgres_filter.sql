-- What of a Filter is not given is NULL.
($1::text[] IS NULL OR event_id = ANY ($1::uuid[]))
AND ($2::text[] IS NULL OR status = ANY ($2::text[]))
AND ($3::text IS NULL OR type = $3::text)
AND ($4::text IS NULL OR aggregate_id = $4::text)
AND ($5::text IS NULL OR strpos(lower(last_error), lower($5::text)) > 0)
AND ($6::bigint IS NULL OR created_at < clock_timestamp() - $6::bigint * interval '1 millisecond')
AND ($7::text IS NULL OR $consumer = $7::text)
