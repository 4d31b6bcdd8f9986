#pragma once

// What the two tables of the inbox must say about one event of one consumer: pure decisions, made
// inside a transaction that has the rows locked. tests/explore/consumer_world.h explores them.
//
//            delivery ──▶ handled ─────────────────────────────▶ ledger done | rejected, no row
//               │                                                   ▲
//               ├─ failed, crash loop, dead letter of the broker ─▶ RETRY ──▶ claim ──▶ handled
//               │                                                 ▲   ▲         │
//               │                                                 │   └─ failed ┤ attempts used up:
//               │                                         redrive ┘             ▼ with the hook
//               └─ no event at all ─────────────────────────────────────────▶ DEAD ──▶ DISCARDED
//
// RETRY: the ledger says `retrying`. DEAD: `dead`. DISCARDED: `discarded`. An event that
// the ledger does not know has no row. Only what is settled for good ages out of the ledger.
//
// An ordered consumer: a delivery whose aggregate has a row that holds (RETRY, HELD, DEAD) becomes
// HELD, and the ledger says `retrying`. Of the rows of an aggregate that hold, the one that arrived
// first is the head, and nothing but a head is claimed. Nobody releases a row: when the head is
// settled, the next one is the head, and a HELD head is due at once.
//
// Why the order of arrival: a lane has one active consumer, so rows arrive in the order in which
// the relay first published their events, and no row ever comes before a head. The position in the
// outbox is another order: that in which transactions that overlap drew their numbers.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/export.h"

namespace baton::inbox {

enum class Outcome : std::uint8_t { done, rejected, retrying, dead, discarded };
enum class Status : std::uint8_t { retry, held, dead, discarded };

// As they are written in the tables.
[[nodiscard]] BATON_EXPORT std::string_view text_of(Outcome outcome);
[[nodiscard]] BATON_EXPORT std::string_view text_of(Status status);
[[nodiscard]] BATON_EXPORT std::optional<Outcome> parse_outcome(std::string_view text);
[[nodiscard]] BATON_EXPORT std::optional<Status> parse_status(std::string_view text);

// A row of inbox_events.
struct Trouble {
  Status status = Status::retry;
  int retries = 0;         // that have begun
  std::int64_t claim = 0;  // an attempt goes on only with the latest; never decreases
  bool operator==(const Trouble&) const = default;
};

struct RetryLimits {
  int max_retries = 5;
  std::vector<Millis> delays;  // before the first retry, the second, …; the last one repeats
  Millis claim_lead{0};        // how long a claimed retry is left alone: longer than a handler runs
  Millis breaker_patience{0};  // so long after its first failure an event's probes use no attempt

  // A row that was redriven, or stored before it was handled, is tried once even if max_retries is
  // 0.
  [[nodiscard]] int last_retry() const { return std::max(max_retries, 1); }

  [[nodiscard]] Millis delay_before(int retry) const {
    if (delays.empty()) return Millis{0};
    const auto last = static_cast<int>(delays.size()) - 1;
    return delays[static_cast<std::size_t>(std::clamp(retry, 0, last))];
  }
};

// How long until the next try of an on_give_up hook that fails.
inline constexpr Millis kMinHookDelay{10'000};
inline constexpr Millis kMaxHookDelay{300'000};

// What to write, in one transaction.
struct Decision {
  enum class Rows : std::uint8_t { keep, put, erase };

  bool moot = false;                // others have decided: write nothing
  std::optional<Outcome> ledger{};  // none: as it is
  Rows rows = Rows::keep;
  Trouble row{};             // to put
  Millis due_in{0};          // next_retry_at of that row, if it is RETRY
  bool run_handler = false;  // in the same transaction, first
  bool run_hook = false;     // on_give_up
};

using Ledger = std::optional<Outcome>;  // none: the event is not there
using Row = std::optional<Trouble>;

// Whether a row with this status keeps the later events of its aggregate waiting.
[[nodiscard]] BATON_EXPORT bool holds(Status status);
// Of a delivery to an ordered consumer: whether its aggregate has a row that holds.
enum class Aggregate : bool { free, in_trouble };

// A row of an aggregate, and when it came compared to the others.
struct Arrived {
  Status status = Status::retry;
  std::int64_t arrival = 0;
};
// Which row may be claimed, if its status lets it; none: no row holds.
[[nodiscard]] BATON_EXPORT std::optional<std::size_t> head_of(std::span<const Arrived> rows);

// A delivery of an event. Moot: a duplicate.
[[nodiscard]] BATON_EXPORT Decision deliver(Ledger ledger, Aggregate aggregate = Aggregate::free);
// Its handler has failed and was rolled back.
[[nodiscard]] BATON_EXPORT Decision fail_delivery(Ledger ledger, const RetryLimits& limits,
                                                  Aggregate aggregate = Aggregate::free);
// A message that the broker gave up on, or delivers again and again because its handler kills the
// process: stored first, due at once.
[[nodiscard]] BATON_EXPORT Decision keep_first(Ledger ledger,
                                               Aggregate aggregate = Aggregate::free);
// A message that is no event. Nobody can compensate for it, so no hook runs.
[[nodiscard]] BATON_EXPORT Decision bury(Ledger ledger);

// A due retry: counts the attempt before it starts. With the attempts used up (the last one died,
// or the hook has failed) it is to be given up instead: by fail_retry(), with this claim. A HELD
// row begins with its first attempt, which is no retry.
[[nodiscard]] BATON_EXPORT Decision claim(const Trouble& row, const RetryLimits& limits);
// Inside the transaction of the handler. Moot: the claim was overtaken.
[[nodiscard]] BATON_EXPORT Decision retry(const Row& row, std::int64_t claim, Outcome outcome);
// An attempt that has failed.
struct FailedAttempt {
  bool probe = false;        // of an open breaker
  Millis in_trouble_for{0};  // since the first failure of its event
};
// A probe gives its attempt back, because the fault may be elsewhere; but not for ever: an open
// breaker that waits for a success must not keep events that cannot succeed.
[[nodiscard]] BATON_EXPORT bool gives_back(const FailedAttempt& attempt, const RetryLimits& limits);
// The handler of a claimed retry has failed and was rolled back.
[[nodiscard]] BATON_EXPORT Decision fail_retry(const Row& row, std::int64_t claim,
                                               const FailedAttempt& attempt,
                                               const RetryLimits& limits);
// The hook has failed and was rolled back.
[[nodiscard]] BATON_EXPORT Decision fail_hook(const Row& row, std::int64_t claim,
                                              const RetryLimits& limits);

// What operators do. Moot: the row is not in a state for it.
[[nodiscard]] BATON_EXPORT Decision redrive(const Row& row);
[[nodiscard]] BATON_EXPORT Decision discard(const Row& row);

[[nodiscard]] BATON_EXPORT bool ages_out(Outcome outcome);

}  // namespace baton::inbox
