#pragma once

// What operators do with the events of an outbox: look, retry, discard. `baton outbox` is a thin
// shell around it, and so is the console.
//
// Retrying and discarding change rows that the relay also changes, so they lock them, and pass over
// those that are locked. An event that is being published at this very moment may still go out
// after it was discarded.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "outbox/event_table.h"

namespace baton::outbox {

[[nodiscard]] BATON_EXPORT const EventTable& outbox_events();

struct EventRow {
  std::int64_t position = 0;
  std::string status;
  std::int64_t attempts = 0;
  std::optional<std::int64_t> next_retry_ms;  // since 1970
  bool held = false;                          // behind an earlier event of its aggregate
  std::string error;                          // the last one
  std::int64_t created_ms = 0;
  std::int64_t now_ms = 0;  // of the database
  std::optional<std::int64_t> settled_ms;
  std::string consumer;
  std::string id, type, aggregate_type, aggregate, exchange, routing_key;
  std::string payload, headers;  // JSON; only of EventPage::with_payload
  std::string correlation_id, causation_id, traceparent;
  std::int64_t version = 1;

  // Of the inbox, with the payload. The body of a message that is no event is `raw`.
  std::string queue, message_id, content_type, raw;

  [[nodiscard]] Millis age() const { return Millis(now_ms - created_ms); }
};

struct EventPage {
  std::int64_t after = 0;  // the position of the last one of the page before
  std::int64_t limit = 50;
  bool with_payload = false;
};

// By position: in the order in which they are published.
[[nodiscard]] BATON_EXPORT Result<std::vector<EventRow>> list_events(sql::Connection& connection,
                                                                     const EventTable& table,
                                                                     const EventFilter& filter,
                                                                     const EventPage& page = {});

// How many events there are of a kind, and how old the oldest is.
struct Pile {
  std::int64_t count = 0;
  Millis oldest{0};
};

// Whether anything is stuck.
struct Verdict {
  bool stuck = false;
  std::string why;  // one line
};

enum class Action : std::uint8_t {
  // FAILED events, and those that wait for another attempt: PENDING with no attempt used, due now,
  // and in the retry index as before, so that what is held behind them stays there.
  retry,
  // The same, and what is held behind them: DISCARDED, and out of the index, so that the next one
  // of the aggregate goes on.
  discard,
};

struct EventGroup {
  std::string status;
  std::string error;
  std::int64_t count = 0;
  Millis oldest{0};
  std::string consumer;
};

// What an action would change.
struct EventCount {
  std::int64_t count = 0;
  std::int64_t last = 0;           // the highest position
  std::vector<EventGroup> groups;  // the largest ones
};
inline constexpr std::int64_t kMaxGroups = 20;

[[nodiscard]] BATON_EXPORT Result<EventCount> count_events(sql::Connection& connection,
                                                           Action action,
                                                           const EventFilter& filter);

// How many at a time.
struct Pace {
  std::int64_t batch = 1'000;                         // in one transaction
  std::function<void(std::size_t)> after_batch = {};  // with the number of changed ones
};

// Up to the position `last`. Gives how many were changed.
[[nodiscard]] BATON_EXPORT Result<std::int64_t> change_events(sql::Connection& connection,
                                                              Action action,
                                                              const EventFilter& filter,
                                                              std::int64_t last,
                                                              const Pace& pace = {});

// For other tables of events: those of a filter that meet a condition of SQL; and a change, which
// gives the positions of what it has changed. Its values are those of the filter, then the
// positions to begin behind and to end at, and how many.
[[nodiscard]] BATON_EXPORT Result<EventCount> count_rows(sql::Connection& connection,
                                                         const EventTable& table,
                                                         const EventFilter& filter,
                                                         std::string_view eligible);
using Positions = Result<std::vector<std::int64_t>>;
[[nodiscard]] BATON_EXPORT Result<std::int64_t> change_in_batches(
    const EventTables& tables, const EventFilter& filter, std::int64_t last, const Pace& pace,
    const std::function<Positions(sql::Transaction&, const sql::Values&)>& change);

}  // namespace baton::outbox
