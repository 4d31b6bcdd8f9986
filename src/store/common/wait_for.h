#pragma once

#include <algorithm>
#include <cerrno>

#include <poll.h>

#include "baton/clock.h"

namespace baton::store {

// Waits until one of the events of poll(2) has come; false if the deadline came first.
inline bool wait_for(int socket, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline - BootClock::now());
    if (left <= Millis{0}) return false;
    pollfd waiting{socket, events, 0};
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next read or write says what is wrong
  }
}

}  // namespace baton::store
