#include "apps/warehouse/observer_store.h"
#include "apps/common/make_tables.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <unordered_set>

#include "apps/warehouse/data.sql.h"
#include "apps/warehouse/observed_event.h"
#include "baton/fence.h"
#include "baton/outbox.h"
#include "sql/transaction.h"

namespace baton::warehouse {
namespace {

constexpr std::int64_t kPollsKept = 10'000;  // of each type
constexpr std::size_t kRowsAtOnce = 200;     // of one statement

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::int64_t as_number(Token token) { return static_cast<std::int64_t>(token); }

// An INSERT of several rows, each with the columns of `fill` after those that all have in common.
class ManyRows {
 public:
  ManyRows(std::string into, sql::Values common)
      : sql_(std::move(into)), values_(std::move(common)) {
    for (std::size_t i = 1; i <= values_.size(); ++i) common_ += "$" + std::to_string(i) + ", ";
  }
  void add(const sql::Values& row) {
    sql_ += (first_ ? " (" : ", (") + common_;
    first_ = false;
    for (std::size_t i = 0; i < row.size(); ++i) {
      values_.push_back(row[i]);
      sql_ += (i == 0 ? "$" : ", $") + std::to_string(values_.size());
    }
    sql_ += ")";
  }
  [[nodiscard]] const std::string& sql() const { return sql_; }
  [[nodiscard]] const sql::Values& values() const { return values_; }

 private:
  std::string sql_;
  sql::Values values_;
  std::string common_;
  bool first_ = true;
};

template <typename Body>
Result<void> in_portions(const std::vector<const SourceRow*>& rows, Body body) {
  for (std::size_t from = 0; from < rows.size(); from += kRowsAtOnce) {
    const auto count = std::min(kRowsAtOnce, rows.size() - from);
    if (auto ok = body(std::span(rows).subspan(from, count)); !ok) return ok;
  }
  return {};
}

Observer observer_of(const sql::Row& row) {
  return {.name = row.text(0),
          .cursor_kind = row.text(1),
          .state = {.last_polled_timestamp = row.integer(2),
                    .complete_below = row.integer(3),
                    .in_pass = row.boolean(4),
                    .pass_horizon = row.integer(5),
                    .page = {.at = row.integer(6), .id = row.text(7)}}};
}

}  // namespace

bool ObserverState::operator==(const ObserverState& other) const {
  return last_polled_timestamp == other.last_polled_timestamp &&
         complete_below == other.complete_below && in_pass == other.in_pass &&
         pass_horizon == other.pass_horizon && page.at == other.page.at && page.id == other.page.id;
}

Result<void> ObserverStore::run(const std::string& sql, const sql::Values& values) {
  auto done = database_.query(sql, values);
  if (!done) return done.error();
  return {};
}

Result<void> ObserverStore::install() {
  if (database_.query("SELECT 1 FROM warehouse_outbox LIMIT 0")) {
    return Error{.code = Code::bad_store,
                 .message =
                     "the data was made by an older warehouse, whose events nobody relays: "
                     "start with another database"};
  }
  // Even a statement that finds everything made waits for those who write to the tables.
  if (database_.query("SELECT 1 FROM warehouse_poll LIMIT 0")) return {};
  const bool postgres = database_.kind() == sql::Kind::postgres;
  auto fence = postgres ? install_fence(database_.postgres()) : install_fence(database_.sqlite());
  if (!fence) return fence;
  auto outbox =
      postgres ? install_outbox(database_.postgres()) : install_outbox(database_.sqlite());
  if (!outbox) return outbox;
  return apps::make_tables(database_, embedded::apps_warehouse::data_sql);
}

Result<void> ObserverStore::add_observer(const std::string& type, const std::string& name,
                                         Cursor cursor) {
  return run(
      "INSERT INTO warehouse_observer (type, name, cursor_kind) VALUES ($1, $2, $3)"
      " ON CONFLICT DO NOTHING",
      {type, name, std::string(to_string(cursor))});
}

Result<std::vector<Observer>> ObserverStore::begin(const Poll& poll) {
  std::vector<Observer> observers;
  auto done = database_.transaction([&](sql::Transaction& transaction) -> Result<void> {
    if (auto ok = transaction.fence(poll.guard.tokens); !ok) return ok;
    auto rows = database_.query(
        "SELECT name, cursor_kind, last_polled_timestamp, complete_below, in_pass, pass_horizon,"
        " page_position, page_id FROM warehouse_observer WHERE type = $1 AND active <> 0"
        " ORDER BY name",
        {poll.type.name});
    if (!rows) return rows.error();
    for (const sql::Row& row : *rows) observers.push_back(observer_of(row));
    if (auto ok = run("DELETE FROM warehouse_poll WHERE type = $1 AND fire <= $2",
                      {poll.type.name, poll.fire - kPollsKept});
        !ok) {
      return ok;
    }
    return run(
        "INSERT INTO warehouse_poll (type, token, node, fire, started) VALUES ($1, $2, $3, $4, $5)",
        {poll.type.name, as_number(poll.guard.token()), poll.node, poll.fire, now()});
  });
  if (!done) return done.error();
  return observers;
}

Result<std::int64_t> ObserverStore::publish(const Poll& poll, const Observer& observer,
                                            const std::vector<SourceRow>& rows,
                                            const ObserverState& next) {
  std::int64_t events = 0;
  auto done = database_.transaction([&](sql::Transaction& transaction) -> Result<void> {
    if (auto ok = transaction.fence(poll.guard.tokens); !ok) return ok;
    auto fresh = unseen(poll, observer, rows);
    if (!fresh) return fresh.error();
    events = static_cast<std::int64_t>(fresh->size());
    if (auto ok = add_events(poll, observer, *fresh); !ok) return ok;
    if (auto ok = remember(poll, observer, *fresh, next); !ok) return ok;
    return save(poll, observer, next);
  });
  if (!done) return done.error();
  return events;
}

Result<std::vector<const SourceRow*>> ObserverStore::unseen(const Poll& poll,
                                                            const Observer& observer,
                                                            const std::vector<SourceRow>& rows) {
  std::vector<const SourceRow*> fresh;
  if (rows.empty()) return fresh;
  auto found = database_.query(
      "SELECT id FROM warehouse_seen"
      " WHERE type = $1 AND observer = $2 AND position >= $3 AND position <= $4",
      {poll.type.name, observer.name, rows.front().position.at, rows.back().position.at});
  if (!found) return found.error();
  std::unordered_set<std::string> seen;
  for (const sql::Row& row : *found) seen.insert(row.text(0));
  for (const SourceRow& row : rows) {
    if (!seen.contains(row.position.id)) fresh.push_back(&row);
  }
  return fresh;
}

Result<void> ObserverStore::add_events(const Poll& poll, const Observer& observer,
                                       const std::vector<const SourceRow*>& rows) {
  const Outbox outbox;
  return in_portions(rows, [&](std::span<const SourceRow* const> portion) -> Result<void> {
    std::vector<Event> events;
    events.reserve(portion.size());
    for (const SourceRow* row : portion) events.push_back(event_of(poll, observer, *row));
    const auto added = database_.kind() == sql::Kind::postgres
                           ? outbox.add_all(database_.postgres(), events)
                           : outbox.add_all(database_.sqlite(), events);
    if (!added) return added.error();
    return {};
  });
}

// Rows before the horizon are behind us for good as soon as the page is.
Result<void> ObserverStore::remember(const Poll& poll, const Observer& observer,
                                     const std::vector<const SourceRow*>& rows,
                                     const ObserverState& next) {
  const std::int64_t horizon = next.in_pass ? next.pass_horizon : next.complete_below;
  std::vector<const SourceRow*> ahead;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(ahead),
               [&](const SourceRow* row) { return row->position.at >= horizon; });
  auto kept = in_portions(ahead, [&](std::span<const SourceRow* const> portion) {
    ManyRows insert("INSERT INTO warehouse_seen (type, observer, id, position) VALUES",
                    {poll.type.name, observer.name});
    for (const SourceRow* row : portion) insert.add({row->position.id, row->position.at});
    return run(insert.sql(), insert.values());
  });
  if (!kept) return kept;
  const std::int64_t behind = next.in_pass ? std::min(next.page.at, horizon) : horizon;
  return run("DELETE FROM warehouse_seen WHERE type = $1 AND observer = $2 AND position < $3",
             {poll.type.name, observer.name, behind});
}

Result<void> ObserverStore::save(const Poll& poll, const Observer& observer,
                                 const ObserverState& next) {
  return run(
      "UPDATE warehouse_observer SET last_polled_timestamp = $3, complete_below = $4,"
      " in_pass = $5, pass_horizon = $6, page_position = $7, page_id = $8"
      " WHERE type = $1 AND name = $2",
      {poll.type.name, observer.name, next.last_polled_timestamp, next.complete_below,
       std::int64_t{next.in_pass ? 1 : 0}, next.pass_horizon, next.page.at, next.page.id});
}

Result<void> ObserverStore::end(const Poll& poll, const PollFigures& figures, bool ok) {
  return database_.transaction([&](sql::Transaction& transaction) -> Result<void> {
    if (auto allowed = transaction.fence(poll.guard.tokens); !allowed) return allowed;
    return run(
        "UPDATE warehouse_poll SET ended = $3, outcome = $4, source_queries = $5,"
        " source_rows = $6, events = $7 WHERE type = $1 AND token = $2",
        {poll.type.name, as_number(poll.guard.token()), now(), std::string(ok ? "ok" : "failed"),
         figures.queries, figures.rows, figures.events});
  });
}

}  // namespace baton::warehouse
