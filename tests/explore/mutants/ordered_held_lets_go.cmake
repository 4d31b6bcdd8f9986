# An event behind others that wait is handled when the first of them is settled.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[return status == Status::retry || status == Status::held || status == Status::dead;]])
set(WITH_1 [[return status == Status::retry || status == Status::dead;]])
