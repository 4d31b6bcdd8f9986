#pragma once

#include <array>
#include <mutex>
#include <string>

#include "store/redis/connection.h"

namespace baton::store::redis {

enum class Script : std::uint8_t { apply, acquire_free, release_held };

// What the server calls each script. Thread-safe.
class Scripts {
 public:
  // Loads all of them into the server of this connection, which has none or has forgotten them.
  Result<void> load(Connection& connection, const Settings& settings, Deadline deadline);

  // Empty before they were first loaded.
  [[nodiscard]] std::string name(Script script) const {
    const std::lock_guard lock(mutex_);
    return names_[static_cast<std::size_t>(script)];
  }

 private:
  mutable std::mutex mutex_;
  std::array<std::string, 3> names_;
};

}  // namespace baton::store::redis
