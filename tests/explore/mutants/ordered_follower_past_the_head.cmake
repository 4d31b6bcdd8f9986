# Handles an event although earlier ones of its aggregate are in trouble.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[  if (aggregate == Aggregate::in_trouble) return hold();
  return {.ledger = Outcome::done, .run_handler = true};]])
set(WITH_1 [[  (void)aggregate;
  return {.ledger = Outcome::done, .run_handler = true};]])
