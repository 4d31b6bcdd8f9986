# The ledger forgets what is tried again.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[outcome == Outcome::rejected || outcome == Outcome::discarded;]])
set(WITH_1 [[outcome == Outcome::rejected || outcome == Outcome::discarded ||
         outcome == Outcome::retrying;]])
