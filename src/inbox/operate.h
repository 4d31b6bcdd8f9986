#pragma once

// What operators do with the messages in trouble of consumers: look, redrive, discard. `baton
// inbox` and `baton dlq` are thin shells around it. It mirrors outbox/operate.h.
//
//   redrive: DEAD ▶ RETRY, due now, no attempt used;  ledger `retrying`
//   discard: DEAD ▶ DISCARDED;                        ledger `discarded`
//
// Both write a new claim, so that a consumer that still works on the row goes on with nothing. They
// lock rows and pass over those that are locked; row and ledger change in one transaction.
// decision.h says the same, and is what is explored.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outbox/operate.h"

namespace baton::inbox {

[[nodiscard]] BATON_EXPORT const outbox::EventTable& inbox_events();

enum class Action : std::uint8_t { redrive, discard };

// By default a consumer remembers ids for so long. What a dead letter has caused elsewhere may be
// forgotten when it is older, so that redriving it needs `force`.
inline constexpr Millis kDeduplicationWindow{std::chrono::hours(14 * 24)};

// `force`: of a redrive, also what is older than the deduplication window.
[[nodiscard]] BATON_EXPORT Result<outbox::EventCount> count_events(
    sql::Connection& connection, Action action, const outbox::EventFilter& filter,
    bool force = false);

// Up to the position `last`; gives how many were changed.
[[nodiscard]] BATON_EXPORT Result<std::int64_t> change_events(sql::Connection& connection,
                                                              Action action,
                                                              const outbox::EventFilter& filter,
                                                              std::int64_t last, bool force = false,
                                                              const outbox::Pace& pace = {});

struct ConsumerHealth {
  std::string consumer;
  std::string status;
  outbox::Pile pile;
  std::optional<Millis> overdue;  // of RETRY: how long the first one has been due
};

// By consumer and status. Empty consumer: of all.
[[nodiscard]] BATON_EXPORT Result<std::vector<ConsumerHealth>> read_health(
    sql::Connection& connection, const std::string& consumer);

// Stuck: dead letters, or retries that nobody takes.
[[nodiscard]] BATON_EXPORT outbox::Verdict judge(const std::vector<ConsumerHealth>& health);

}  // namespace baton::inbox
