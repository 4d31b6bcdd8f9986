#pragma once

// The services there are. A new one is a folder, a queue in common/topology.cc and a line here.

#include <cstdint>
#include <span>
#include <string_view>

#include "apps/documents/common/service.h"

namespace baton::documents {

struct KnownService {
  std::string_view name;   // of the command, and of its database
  std::string_view about;  // for help
  std::uint16_t port;      // where it listens if it is not told
  MakeService make;
  std::string_view queue = {};  // that it consumes; empty: `documents up` shows none
};

[[nodiscard]] std::span<const KnownService> all_services();
[[nodiscard]] const KnownService* find_service(std::string_view name);

}  // namespace baton::documents
