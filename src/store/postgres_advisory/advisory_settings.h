#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "store/postgres/settings.h"

namespace baton::store::postgres_advisory {

// The parts of a postgres-advisory:// URL.
struct AdvisorySettings {
  postgres::Settings server;
  postgres::Settings sessions;      // the same, for the sessions that have the locks
  std::optional<std::int64_t> key;  // for every name but Baton's own
  std::size_t max_waiters = 32;
  std::size_t max_idle_sessions = 64;

  // A blocked session keeps vacuum from cleaning up behind it. So it leaves the server's queue
  // after this long and joins it again at the end.
  Millis longest_wait = std::chrono::minutes(5);

  // Only with the machine's own clock do the server's timers mean anything.
  bool timers = true;
};

[[nodiscard]] Result<AdvisorySettings> parse_advisory_url(std::string_view url);

// The 64 bits that stand for a name, the same as baton_advisory.look gives.
[[nodiscard]] std::int64_t lock_key_of(const AdvisorySettings& settings, std::string_view key);

}  // namespace baton::store::postgres_advisory
