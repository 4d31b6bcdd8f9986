# A repeated acquire is granted again without a new TTL.
set(FILE src/core/acquire.cc)
set(REPLACE_1 [[    extend(step, *state, *find_holder(*state, step.request.grant));
  }
  return granted(step, found);]])
set(WITH_1 [[    state->dirty = true;
  }
  return granted(step, found);]])
