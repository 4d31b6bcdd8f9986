# The snapshot of a look is taken by a statement of its own, after that of the rows.
set(EXPLORES relay)
set(FILE tests/explore/relay_world.cc)
set(REPLACE_1 [[    const relay::Page page = select(state, *read);]])
set(WITH_1 [[    relay::Page page = select(state, *read);
    if (!read->now) {
      for (int w = 0; w < writers_; ++w) {
        if (state.writers[w].phase != Phase::at_work || state.writers[w].xid == 0) continue;
        if (state.writers[w].drawn != static_cast<int>(setting_.writers[w].rows.size())) continue;
        next.writers[w].phase = Phase::committed;
        ended(next, next.writers[w].xid);
      }
      page.now = snapshot(next);
    }]])
