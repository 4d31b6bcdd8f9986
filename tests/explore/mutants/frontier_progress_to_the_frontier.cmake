# Saves how far it was safe to read, not the position of the last row: positions come back.
set(EXPLORES frontier)
set(FILE tests/explore/eventlog_world.cc)
set(REPLACE_1 [[    next.reader.listed = more;]])
set(WITH_1 [[    if (!more) next.progress = std::max(next.progress, state.reader.frontier->position());
    next.reader.listed = more;]])
