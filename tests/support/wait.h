#pragma once

#include <chrono>
#include <thread>

namespace baton::test {

// How long a test waits for something that is bound to happen. Generous, because it is only ever
// used up by a failing test.
inline constexpr std::chrono::seconds patience{30};

// Asks `condition` until it holds or `limit` has passed, and returns whether it held. For
// conditions outside this process; inside it, wait on the thing itself.
template <typename Condition>
bool poll_until(Condition&& condition, std::chrono::nanoseconds limit = patience,
                std::chrono::nanoseconds interval = std::chrono::milliseconds(2)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(interval);
  }
  return true;
}

}  // namespace baton::test
