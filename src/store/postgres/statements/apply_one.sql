-- Any lone request, answered by functions/apply.sql. A row is cheaper than arrays of one.
SELECT * FROM baton.apply_all(ARRAY[ROW(
  1, :verb, :grant_id, :every_key[], :every_mode[], :ttl, :queue_ttl, :claim_within,
  :at_least_for, :tombstone_ttl, :if_ordinal_below, :note_ordinal, :note_text, :schema_version,
  :predicate, :owner, :channel, :metadata::jsonb, :heir, :reason, :flag)::baton.request],
  :test_clock)
