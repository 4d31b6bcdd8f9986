-- Any batch, answered by functions/apply.sql.
SELECT * FROM baton.apply(
  :verb[], :grant_id[], :name_count[], :every_key[], :every_mode[], :ttl[], :queue_ttl[],
  :claim_within[], :at_least_for[], :tombstone_ttl[], :if_ordinal_below[], :note_ordinal[],
  :note_text[], :schema_version[], :predicate[], :owner[], :channel[], :metadata[], :heir[],
  :reason[], :flag[], :test_clock)
