# A FAILED event whose aggregate waits is not in the retry index.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[mark.indexed = options_.on_failed == OnFailed::hold;]])
set(WITH_1 [[mark.indexed = false;]])
set(REPLACE_2 [[mark.kind == Mark::Kind::retry || mark.indexed;]])
set(WITH_2 [[mark.kind == Mark::Kind::retry || options_.on_failed == OnFailed::hold;]])
