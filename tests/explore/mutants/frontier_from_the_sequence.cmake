# A new session begins at what has been drawn, not at the saved progress.
set(EXPLORES frontier)
set(FILE tests/explore/eventlog_world.cc)
set(REPLACE_1 [[      reader.frontier.emplace(state.progress);]])
set(WITH_1 [[      reader.frontier.emplace(state.sequence);]])
