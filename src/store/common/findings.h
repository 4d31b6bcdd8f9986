#pragma once

// Findings about a deployment that every store may have.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "baton/store_admin.h"

namespace baton::store {

// Collects the findings of one examination.
class Findings {
 public:
  void add(std::string code, Severity severity, std::string what, std::string consequence,
           std::string remedy);
  void add(std::optional<Finding> finding);          // if there is one
  [[nodiscard]] std::vector<Finding> worst_first();  // leaves none behind

 private:
  std::vector<Finding> all_;
};

void worst_first(std::vector<Finding>& findings);

// A schema that is missing, old or newer than this binary; nothing if it fits. `migrate` is the
// command that makes it fit.
[[nodiscard]] std::optional<Finding> schema_finding(int version, int expected, std::string migrate);

// The slowest of a few durable writes against the TTL: a third of it passes before a renewal, and a
// tenth is the margin.
[[nodiscard]] std::optional<Finding> slow_finding(std::chrono::nanoseconds slowest, Millis ttl,
                                                  const std::string& where);

// Names whose values cannot be read; nothing if there are none.
[[nodiscard]] std::optional<Finding> damaged_finding(const std::vector<std::string>& names);

// The keys of such names, of all regions, as far as `find` gives any.
using Find = std::function<Result<Page<LockInfo>>(const Query&)>;
[[nodiscard]] std::vector<std::string> damaged_names(const Find& find);

// The answer of StoreAdmin::forget_damaged where there is nothing to forget.
[[nodiscard]] Error nothing_stored(const std::string& key);
[[nodiscard]] Error not_damaged(const std::string& key);
[[nodiscard]] Error changed_meanwhile(const std::string& key);

// The store's clock minus ours, as far as a round trip of `blur` can tell.
[[nodiscard]] std::optional<Finding> clock_finding(std::chrono::microseconds ahead,
                                                   std::chrono::microseconds blur);

// Microseconds since 1970 by the machine's clock.
[[nodiscard]] std::chrono::microseconds wall_clock();

// Runs `write` a few times and gives the slowest; nothing if one fails.
[[nodiscard]] std::optional<std::chrono::nanoseconds> slowest_of(
    int times, const std::function<bool()>& write);

}  // namespace baton::store
