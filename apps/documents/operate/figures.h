#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "apps/documents/operate/places.h"

namespace baton::documents {

// How a platform is doing, in a line for people.
struct Figures {
  std::map<std::string, std::int64_t> by_status;
  std::int64_t events = 0, sealed = 0, notifications = 0, retrying = 0, dead = 0;
  [[nodiscard]] std::string line() const;
};

[[nodiscard]] Result<Figures> read_figures(const Places& places);

}  // namespace baton::documents
