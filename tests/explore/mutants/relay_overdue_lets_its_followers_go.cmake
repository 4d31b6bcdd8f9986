# The followers of an event go on when its confirm is overdue.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[                  .error = why});
  hold_followers(aggregate);]])
set(WITH_1 [[                  .error = why});
  next_of(aggregate);]])
