#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/lock_table.h"

namespace baton::store::kubernetes {

// Microseconds since 1970 by the API server's clock.
using ServerTime = std::chrono::microseconds;

// The header Date, which has whole seconds: "Sun, 06 Nov 1994 08:49:37 GMT".
[[nodiscard]] BATON_EXPORT std::optional<ServerTime> parse_http_date(std::string_view text);

// "1994-11-06T08:49:37.000000Z", as Kubernetes writes its MicroTime.
[[nodiscard]] BATON_EXPORT std::string print_micro_time(ServerTime time);

// What time it is on the server, from the dates of its answers. A date is cut to the second, so
// this is never ahead by more than the server's clock was set back, and after a few answers hardly
// behind. Thread-safe.
class BATON_EXPORT ServerClock {
 public:
  // An answer with this date arrived at `at`, by our own clock.
  void heard(ServerTime date, core::StoreTime at);

  // Zero if no answer had a date yet.
  [[nodiscard]] ServerTime at(core::StoreTime local) const;

 private:
  mutable std::mutex mutex_;
  std::optional<ServerTime> ahead_;  // of our own clock
};

}  // namespace baton::store::kubernetes
