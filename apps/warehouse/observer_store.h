#pragma once

// What the warehouse keeps of its own: the state of each observer and the outbox (baton/outbox.h),
// in one database, so that both change in one transaction, which the fence guards.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/warehouse/source.h"
#include "baton/fence_token.h"
#include "sql/connection.h"

namespace baton::warehouse {

// Under which lease something is written.
struct Guard {
  std::vector<FenceToken> tokens;  // Lease::tokens()
  [[nodiscard]] Token token() const { return tokens.empty() ? 0 : tokens.front().token; }
};

// How far an observer has come.
struct ObserverState {
  std::int64_t last_polled_timestamp = 0;
  std::int64_t complete_below = 0;
  bool in_pass = false;
  std::int64_t pass_horizon = 0;
  Position page;

  bool operator==(const ObserverState&) const;
};

struct Observer {
  std::string name;
  std::string cursor_kind;
  ObserverState state;
};

struct PollFigures {
  std::int64_t queries = 0;
  std::int64_t rows = 0;
  std::int64_t events = 0;
};

// A poll of one type under one lease.
struct Poll {
  const ObserverType& type;
  Guard guard;
  std::string node;
  std::int64_t fire = 0;
};

class ObserverStore {
 public:
  explicit ObserverStore(sql::Connection& database) : database_(database) {}

  // Makes the tables and the fence. Harmless to repeat, also by several at once.
  Result<void> install();
  Result<void> add_observer(const std::string& type, const std::string& name, Cursor cursor);

  // The active observers of the type. From here on the fence knows this lease: a node that polled
  // before it cannot write any more, so what is read here does not change under our feet.
  Result<std::vector<Observer>> begin(const Poll& poll);

  // Publishes those of `rows` that are not published yet, and keeps `next`: both or neither.
  // Gives how many events these were.
  Result<std::int64_t> publish(const Poll& poll, const Observer& observer,
                               const std::vector<SourceRow>& rows, const ObserverState& next);

  Result<void> end(const Poll& poll, const PollFigures& figures, bool ok);

 private:
  Result<std::vector<const SourceRow*>> unseen(const Poll& poll, const Observer& observer,
                                               const std::vector<SourceRow>& rows);
  Result<void> add_events(const Poll& poll, const Observer& observer,
                          const std::vector<const SourceRow*>& rows);
  Result<void> remember(const Poll& poll, const Observer& observer,
                        const std::vector<const SourceRow*>& rows, const ObserverState& next);
  Result<void> save(const Poll& poll, const Observer& observer, const ObserverState& next);
  Result<void> run(const std::string& sql, const sql::Values& values);

  sql::Connection& database_;
};

}  // namespace baton::warehouse
