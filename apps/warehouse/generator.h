#pragma once

// Stands for the systems that write into the source. It makes what is hard for a reader:
// rows that become visible long after their time, transactions that commit in another order than
// they began, many rows of the same time, ids in no order at all.

#include <cstdint>
#include <string>

#include "apps/warehouse/config.h"

namespace baton::warehouse {

struct GeneratorSettings {
  double rate = 100;  // rows a second, over all types
  Millis duration{10'000};
  Millis late{1'000};  // a row becomes visible at most so long after its time
  Millis tick{10};     // times are multiples of this
  int writers = 3;     // of each type, at the same time
  std::uint64_t seed = 0;
};

struct Generated {
  std::int64_t rows = 0;
  std::int64_t late_commits = 0;  // that another transaction overtook, or that took a tick or more
  std::int64_t too_late = 0;      // undone, and written again with a new time
  Millis latest{0};
};

// Makes the tables if they are not there.
[[nodiscard]] Result<Generated> generate(const Config& config, const GeneratorSettings& settings);

}  // namespace baton::warehouse
