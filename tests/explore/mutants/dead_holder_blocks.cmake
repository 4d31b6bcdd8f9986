# A holder stays although its time is over.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[return h.expires <= now; });
  const auto waiters]])
set(WITH_1 [[return h.expires <= now - std::chrono::hours(24); });
  const auto waiters]])
