# Handles every delivery, whatever the ledger says.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[Decision deliver(Ledger ledger, Aggregate aggregate) {
  if (ledger) return moot();]])
set(WITH_1 [[Decision deliver(Ledger, Aggregate aggregate) {]])
