# The lock that is held while the relay sleeps ends with the statement that took it.
set(EXPLORES wakeup)
set(FILE tests/explore/wakeup_world.cc)
set(REPLACE_1 [[        next.locked = can_lock(state);
        next.relay.locked(next.locked);]])
set(WITH_1 [[        next.relay.locked(can_lock(state));]])
