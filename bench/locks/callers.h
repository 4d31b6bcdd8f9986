#pragma once

#include <string>
#include <vector>

#include "baton/locks.h"
#include "harness/slices.h"

namespace baton::bench {

// Steps of so many callers of one client: each acquires and releases, in turn, names that no other
// caller uses.
[[nodiscard]] std::vector<Step> callers(const LockClient& locks, int count, int names_each);

// The same by callbacks: no caller has a thread.
[[nodiscard]] Load callers_by_callback(const LockClient& locks, int count, int names_each);

[[nodiscard]] LockName bench_name(int caller, int name);

}  // namespace baton::bench
