#pragma once

// Everything that the store knows about jobs, in a few requests however many jobs there are.

#include <string>
#include <vector>

#include "baton/locks.h"

namespace baton::schedule {

[[nodiscard]] Result<std::vector<LockInfo>> find_subject(LockClient& locks,
                                                         std::string_view subject,
                                                         const std::string& region,
                                                         Millis timeout = Millis(5'000));

[[nodiscard]] Result<std::vector<LockInfo>> get_jobs(LockClient& locks,
                                                     const std::vector<std::string>& jobs,
                                                     const std::string& region,
                                                     Millis timeout = Millis(5'000));

}  // namespace baton::schedule
