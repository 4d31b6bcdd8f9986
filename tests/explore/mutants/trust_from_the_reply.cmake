# A lease is trusted from when its reply came, not from before the request was sent.
set(FILE tests/explore/client_side.cc)
set(REPLACE_1 [[trust_from(reply.sent, setting));]])
set(WITH_1 [[trust_from(0, setting));]])
