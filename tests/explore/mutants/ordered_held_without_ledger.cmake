# The ledger does not know of a HELD event.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[Decision hold() { return put(Outcome::retrying, {.status = Status::held}); }]])
set(WITH_1 [[Decision hold() {
  Decision decision = put(Outcome::retrying, {.status = Status::held});
  decision.ledger.reset();
  return decision;
}]])
