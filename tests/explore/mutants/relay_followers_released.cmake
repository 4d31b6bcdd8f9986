# The mark of an event releases its follower, instead of the head being due.
set(EXPLORES relay)
set(FILE tests/explore/relay_world.cc)
set(REPLACE_1 [[row.status == 'P', row.retry == Retry::infinity,]])
set(WITH_1 [[row.status == 'P', false,]])
set(REPLACE_2 [[        row.status = 'S';
        row.retry = Retry::none;]])
set(WITH_2 [[        row.status = 'S';
        row.retry = Retry::none;
        for (const int j : by_position(state)) {
          if (aggregates_[j] != aggregates_[i] || state.rows[j].retry == Retry::none) continue;
          state.rows[j].retry = Retry::at_a_time;
          break;
        }]])
