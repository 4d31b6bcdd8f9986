# Writers only look whether the relay sleeps, and keep nothing that it can see.
set(EXPLORES wakeup)
set(FILE tests/explore/wakeup_world.cc)
set(REPLACE_1 [[return !shared && !setting_.paused_owner;]])
set(WITH_1 [[return (!shared || true) && !setting_.paused_owner;]])
