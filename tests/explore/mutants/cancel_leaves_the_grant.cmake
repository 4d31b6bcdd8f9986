# Cancelling takes the waiter out of the queue, but leaves what was granted.
set(FILE src/core/end.cc)
set(REPLACE_1 [[return h.grant == request.grant && h.state != HolderState::parked;]])
set(WITH_1 [[return h.grant == request.grant && h.state == HolderState::parked;]])
