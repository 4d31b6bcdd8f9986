# Sleeps as soon as it has the lock.
set(EXPLORES wakeup)
set(FILE src/relay/wakeup.cc)
set(REPLACE_1 [[  if (got) {
    step_ = Step::look;]])
set(WITH_1 [[  if (got) {
    step_ = Step::sleep;]])
