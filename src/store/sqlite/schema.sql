-- The lock store of Baton, version 1. The names carry a prefix because the file may be the user's
-- own database, so that fences and locks share its transactions.

-- One document a name, as src/core/document.h writes it. No row: free, nothing remembered.
CREATE TABLE baton_lock (
  key TEXT NOT NULL PRIMARY KEY,
  doc TEXT NOT NULL
) WITHOUT ROWID;

-- One row. The times in baton_lock are microseconds of CLOCK_BOOTTIME under this boot, in this time
-- namespace; `counter` is the last token or turn that was drawn.
CREATE TABLE baton_meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  schema_version INTEGER NOT NULL,
  counter INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  time_namespace TEXT NOT NULL
);

INSERT INTO baton_meta VALUES (1, 1, 0, '', '');
