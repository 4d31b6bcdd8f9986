# A DEAD event does not keep the later ones of its aggregate waiting.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[return status == Status::retry || status == Status::held || status == Status::dead;]])
set(WITH_1 [[return status == Status::retry || status == Status::held;]])
