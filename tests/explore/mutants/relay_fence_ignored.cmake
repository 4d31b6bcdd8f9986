# A paused owner may mark after another one has taken over.
set(EXPLORES relay)
set(FILE tests/explore/relay_world.cc)
set(REPLACE_1 [[  static bool may_write(const State& state, const Relay& relay) {
    return state.fence <= relay.token;]])
set(WITH_1 [[  static bool may_write(const State& state, const Relay& relay) {
    return state.fence <= relay.token || true;]])
