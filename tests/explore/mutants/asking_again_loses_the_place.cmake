# A waiter that repeats its acquire goes to the end of the queue.
set(FILE src/core/acquire.cc)
set(REPLACE_1 [[      own->stale = stale;
      state.dirty = true;
      continue;]])
set(WITH_1 [[      erase_waiter(state, own->grant, false);
      turn = step.table.next();]])
