# The sequence is read after the list of locks.
set(EXPLORES frontier)
set(FILE tests/explore/eventlog_world.cc)
set(REPLACE_1 [[      read_sequence(state, *reader.look);]])
set(WITH_1 [[      list_locks(state, *reader.look);]])
set(REPLACE_2 [[      list_locks(state, *reader.look);
      const Position before]])
set(WITH_2 [[      read_sequence(state, *reader.look);
      const Position before]])
