-- The fence: one row a lock name, the highest token seen of each mode. It belongs into the database
-- whose data the locks protect, wherever the locks themselves are.
CREATE TABLE IF NOT EXISTS baton_fence (
  name TEXT NOT NULL PRIMARY KEY,
  is_token INTEGER NOT NULL DEFAULT 0,
  ix_token INTEGER NOT NULL DEFAULT 0,
  s_token INTEGER NOT NULL DEFAULT 0,
  u_token INTEGER NOT NULL DEFAULT 0,
  six_token INTEGER NOT NULL DEFAULT 0,
  x_token INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
