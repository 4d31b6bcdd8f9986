# A waiter that is no longer refreshed stays in the queue.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[w.stale <= now || (w.converting]])
set(WITH_1 [[(w.converting]])
