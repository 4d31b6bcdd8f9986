#pragma once

// Whether anything is stuck in an outbox, and why: `baton outbox status`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outbox/operate.h"

namespace baton::outbox {

struct LaneHealth {
  std::int64_t lane = 0;
  std::optional<Millis> read_ago;  // when a relay last said that it reads; none: never
  std::int64_t waiting = 0;        // for their first attempt
  Millis oldest{0};
};

struct Health {
  std::vector<LaneHealth> lanes;
  Pile waiting;                     // for their first attempt, in all lanes
  Pile retrying;                    // wait for another attempt
  Pile held;                        // wait for an earlier event of their aggregate
  Pile failed;                      // all attempts used
  std::int64_t held_by_failed = 0;  // of `held` and `retrying`, those behind a failed one
  std::string error;                // the one that most of those in trouble have

  // Of a large table `sent` is an estimate of all rows, and the others are not counted.
  std::int64_t sent = 0;
  std::optional<std::int64_t> discarded;
  bool estimated = false;
};

// Reads a large outbox in milliseconds: what is in trouble has an index, and what waits is behind
// the checkpoints of the relay.
[[nodiscard]] BATON_EXPORT Result<Health> read_health(sql::Connection& connection);

// Stuck: a lane that no relay reads, an event that has failed, or one that has waited for more than
// a minute although relays read, also if it is being retried: the broker has returned it again and
// again.
[[nodiscard]] BATON_EXPORT Verdict judge(const Health& health);

}  // namespace baton::outbox
