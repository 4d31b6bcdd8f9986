# The rows are read by the statement that lists the locks: its snapshot is older than the list.
set(EXPLORES frontier)
set(FILE tests/explore/eventlog_world.cc)
set(REPLACE_1 [[      reader.statement = 0;]])
set(WITH_1 [[      reader.statement = visible_rows(state);]])
set(REPLACE_2 [[    const std::uint8_t seen = visible_rows(state);]])
set(WITH_2 [[    const std::uint8_t seen = state.reader.statement;]])
