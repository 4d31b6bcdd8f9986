# A renewal is granted without a new TTL.
set(FILE src/core/hold.cc)
set(REPLACE_1 [[    extend(step, *state, *find_holder(*state, step.request.grant));
  }
  make_change(]])
set(WITH_1 [[    state->dirty = true;
  }
  make_change(]])
