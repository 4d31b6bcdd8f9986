# Goes on with a retry that others have claimed since.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[return row && row->status == Status::retry && row->claim == claim;]])
set(WITH_1 [[return row && row->status == Status::retry && claim >= 0;]])
