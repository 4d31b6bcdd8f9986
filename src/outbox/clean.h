#pragma once

// Retention: removes events that were published or discarded long enough ago. The relay that owns
// lane 0 calls it once an hour; `baton outbox clean` does it by hand.
//
// PostgreSQL: a day's events leave by TRUNCATE of its slot, of which there are eight. What is
// PENDING or FAILED there is first moved into the slot of today: it stays in its lane and keeps its
// position, so that it keeps its order, and a relay that knows it still finds it. If today's slot
// has an event of the same id, the moved one is DISCARDED: the other one is published. The role
// needs SELECT and UPDATE on outbox_events, and SELECT and TRUNCATE on the slots.
//
// SQLite: DELETE, in transactions of 1,000.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/clock.h"
#include "baton/export.h"
#include "baton/result.h"
#include "sql/connection.h"

namespace baton::outbox {

inline constexpr Millis kMinRetention{std::chrono::hours(1)};
inline constexpr Millis kMaxRetention{std::chrono::hours(24 * 6)};  // eight slots allow no more

struct CleanOptions {
  // Since they were added. PostgreSQL: a day goes as a whole, when its last event is that old.
  Millis retention{std::chrono::hours(24 * 3)};
  // Sessions that open the table wait behind a TRUNCATE that waits, the relay too.
  Millis lock_timeout{200};
  std::int64_t most = 100'000;  // SQLite: events in one call
};

struct Cleaned {
  std::int64_t removed = 0;
  std::int64_t moved = 0;
  std::int64_t discarded = 0;          // twins
  std::vector<std::string> postponed;  // why slots could not be emptied; the next call tries again
  bool more = false;                   // SQLite: `most` was reached
};

using WallTime = std::chrono::system_clock::time_point;

// The GRANT statement that a role which may read and update the outbox also needs, to clean it on
// PostgreSQL.
[[nodiscard]] BATON_EXPORT std::string clean_grants();

// Blocks for a few statements. `bad_request`: the retention is out of range. `now`: for tests; the
// database has a clock of its own, which events are dated by.
[[nodiscard]] BATON_EXPORT Result<Cleaned> clean(sql::Connection& connection,
                                                 const CleanOptions& options = {},
                                                 std::optional<WallTime> now = {});

}  // namespace baton::outbox
