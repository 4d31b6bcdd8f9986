# A replica that has owned the lane may mark, also after another owner has taken it over.
set(FILE src/relay/sqlite_tables.cc)
set(REPLACE_1 [[      if (!*mine) {]])
set(WITH_1 [[      if (!*mine && fenced.contains(batch.lane.number)) {]])
