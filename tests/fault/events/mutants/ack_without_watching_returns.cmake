# The broker's ack counts, although the message has been returned.
set(FILE src/relay/look.cc)
set(REPLACE_1 [[case PublishOutcome::returned: return Blame::event;]])
set(WITH_1 [[case PublishOutcome::returned: return Blame::nobody;]])
