# The counter of tokens starts again when a lock is released.
set(FILE src/core/end.cc)
set(REPLACE_1 [[  erase_waiter(state, step.request.grant, true);
  state.dirty = true;
}]])
set(WITH_1 [[  erase_waiter(state, step.request.grant, true);
  state.dirty = true;
  step.table.last = 0;
}]])
