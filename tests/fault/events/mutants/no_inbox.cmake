# Handles every delivery, whatever the ledger knows of it.
set(FILE src/inbox/attempt.cc)
set(REPLACE_1 [[return std::binary_search(fresh.begin(), fresh.end(), one.sent.event.id);]])
set(WITH_1 [[return std::binary_search(fresh.begin(), fresh.end(), one.sent.event.id) ||
           !one.sent.event.id.empty();]])
