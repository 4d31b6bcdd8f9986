#pragma once

// Waiting with a timeout of the caller.

#include <chrono>

#include "capi/boundary.h"

namespace baton::capi {

// Negative: as long as there is. The clock is that of the condition variables.
inline std::chrono::steady_clock::time_point end_of(Millis timeout) {
  constexpr Millis kLongest = std::chrono::hours(24);
  const Millis wait = timeout < Millis(0) ? kLongest : std::min(timeout, kLongest);
  return std::chrono::steady_clock::now() + wait;
}

inline int give_fd(const Result<int>& opened, int* fd, baton_error* error) {
  if (!opened) {
    return told(error, BATON_INTERNAL, opened.error().message);
  }
  if (fd == nullptr) return told(error, bad_request("there is nowhere to put the descriptor"));
  *fd = *opened;
  return done(error);
}

}  // namespace baton::capi
