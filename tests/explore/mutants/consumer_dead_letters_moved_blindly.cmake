# Moves a dead letter of the broker that the ledger knows.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[Decision keep_first(Ledger ledger, Aggregate aggregate) {
  if (ledger) return moot();]])
set(WITH_1 [[Decision keep_first(Ledger, Aggregate aggregate) {]])
