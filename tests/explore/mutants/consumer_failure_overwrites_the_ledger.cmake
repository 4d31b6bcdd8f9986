# Records a failure although others have decided meanwhile.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[Decision fail_delivery(Ledger ledger, const RetryLimits& limits, Aggregate aggregate) {
  if (ledger) return moot();]])
set(WITH_1 [[Decision fail_delivery(Ledger, const RetryLimits& limits, Aggregate aggregate) {]])
