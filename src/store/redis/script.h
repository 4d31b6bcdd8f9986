#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "store/redis/connection.h"

namespace baton::store::redis {

enum class Script : std::uint8_t { apply, acquire_free, release_held };

// The names of the scripts at servers: a checksum of the text, so the same on all servers.
class Scripts {
 public:
  // Loads all of them into the server of this connection, which has none or has forgotten them. To
  // be done once before all else; thread-safe after that.
  Result<void> load(Connection& connection, const Settings& settings, Deadline deadline);

  [[nodiscard]] const std::string& name(Script script) const {
    return names_[static_cast<std::size_t>(script)];
  }

 private:
  std::array<std::string, 3> names_;
};

}  // namespace baton::store::redis
