# What is known of transactions outlives the session.
set(EXPLORES frontier)
set(FILE tests/explore/eventlog_world.cc)
set(REPLACE_1 [[  static void disconnect(State& state) { state.reader = {}; }]])
set(WITH_1 [[  static void disconnect(State& state) {
    state.reader.look.reset();
    state.reader.listed = false;
  }]])
