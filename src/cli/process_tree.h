#pragma once

#include <vector>

#include <sys/types.h>

namespace baton::cli {

// All live processes below `root`, by /proc; parents come before their children. Empty where /proc
// is missing.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t root);

// Those whose parent is `parent`.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

// The processes that a signal has reached.
struct Reached {
  bool anybody = false;
  std::vector<pid_t> refused;  // whom we may not signal; a parent comes before its children
};
Reached send_signal(const std::vector<pid_t>& processes, int number);

}  // namespace baton::cli
