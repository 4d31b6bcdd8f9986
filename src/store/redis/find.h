#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/batch.h"

namespace baton::store::redis {

// A page of names. SCAN knows no order, so every page looks at all names that may match; it keeps
// the first few thousand of them in mind, not all.
[[nodiscard]] Result<Page<LockInfo>> find(StoreContext& context, ConnectionSet& connections,
                                          const Query& query, std::optional<core::StoreTime> at,
                                          Deadline deadline);

// The state in the value of a name: nothing if there is none, an error if it is damaged.
[[nodiscard]] std::optional<Result<core::NameState>> state_in(const Value& value);

// Everything under a pattern, on every master of a cluster, a piece at a time.
[[nodiscard]] Result<void> scan(
    StoreContext& context, ConnectionSet& connections, const std::string& pattern,
    Deadline deadline,
    const std::function<Result<void>(Connection&, const std::vector<Value>&)>& take);

}  // namespace baton::store::redis
