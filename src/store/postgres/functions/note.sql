-- Notes, and the version of the lock schema, which is the ordinal of one.

-- Sets the sequence to the version in the note of BATON:schema. Runs with the rights of its
-- owner, so that a role that may not set the sequence can set it to the true version and to
-- nothing else. The row is locked, so that nobody changes the note meanwhile. A note that this
-- transaction may have written itself, and may still roll back, is left for the next transaction.
CREATE OR REPLACE FUNCTION baton.tell_version() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  version   bigint;
  committed boolean;
BEGIN
  SELECT l.note_ordinal, age(l.xmin) > age(pg_current_xact_id()::xid) INTO version, committed
    FROM baton.lock l WHERE l.key = 'BATON:schema' FOR NO KEY UPDATE;
  IF committed AND version >= 0
     AND version IS DISTINCT FROM pg_sequence_last_value('baton.schema_version') THEN
    PERFORM setval('baton.schema_version', version);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION baton.write_note(k text, new_ordinal bigint, new_text text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF new_ordinal IS NULL AND new_text IS NULL THEN RETURN; END IF;
  -- With is_called = false the sequence has no value, and every request reads the note instead.
  IF k = 'BATON:schema' AND new_ordinal IS NOT NULL THEN
    PERFORM setval('baton.schema_version', 0, false);
  END IF;
  UPDATE baton.lock l SET note_ordinal = coalesce(new_ordinal, l.note_ordinal),
                          note_text = coalesce(new_text, l.note_text)
    WHERE l.key = k;
END $$;
