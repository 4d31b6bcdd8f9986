#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/store_admin.h"

namespace baton::store::sqlite {

struct Checkup {
  Millis ttl{30'000};
  std::uint64_t least_free = std::uint64_t{64} << 20;  // bytes
  std::optional<std::uint64_t> filesystem;             // instead of what the system says
};

// Findings about a store in this file, which need not be there yet.
[[nodiscard]] Result<std::vector<Finding>> examine(const std::string& path, const Checkup& checkup,
                                                   Deadline deadline);

}  // namespace baton::store::sqlite
