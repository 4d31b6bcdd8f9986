#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/documents/operate/places.h"
#include "submissions.h"

namespace demo {

// A promise, and whether the tables of the services show that it was kept.
struct Finding {
  bool ok = false;
  std::string what;
};

// Knows what was submitted, which `documents verify` does not: the two share nothing.
[[nodiscard]] std::vector<Finding> check_documents(const baton::documents::Places& places,
                                                   const std::vector<Submitted>& submitted);

}  // namespace demo
