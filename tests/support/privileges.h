#pragma once

// For tests that need more than an ordinary process may: a namespace, a disk, another user. Where
// the kernel or a container refuses it, such a test says so and is skipped:
//
//   const std::string refused = refusal({"unshare", "--time", "true"});
//   if (!refused.empty()) GTEST_SKIP() << "needs a time namespace of its own: " << refused;

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "support/process.h"

namespace baton::test {

// What a command said that failed; empty if it succeeded.
inline std::string refusal(std::vector<std::string> argv) {
  const std::string program = argv.at(0);
  const auto done = run({.argv = std::move(argv)});
  if (done.status.success()) return {};
  return done.err.empty() ? program + " failed" : done.err;
}

// Why this process cannot start another one as nobody: root in a container may be no user but
// itself. Empty for those who are not root, and need not change.
inline std::string cannot_become_nobody() {
  if (::geteuid() != 0) return {};
  return refusal({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "true"});
}

}  // namespace baton::test
