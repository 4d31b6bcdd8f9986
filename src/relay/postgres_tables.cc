// The outbox in a PostgreSQL database.

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include <libpq-fe.h>

#include "outbox/outbox_table.h"
#include "relay/lane_tables.h"
#include "relay/postgres/fetch.sql.h"
#include "relay/postgres/first_positions.sql.h"
#include "relay/postgres/followers.sql.h"
#include "relay/postgres/heads.sql.h"
#include "relay/postgres/in_index.sql.h"
#include "relay/postgres/lock.sql.h"
#include "relay/postgres/lock_lanes.sql.h"
#include "relay/postgres/look.sql.h"
#include "relay/postgres/mark_sent.sql.h"
#include "relay/postgres/mark_sent_in_slot.sql.h"
#include "relay/postgres/mark_trouble.sql.h"
#include "relay/postgres/page.sql.h"
#include "relay/postgres/restamp.sql.h"
#include "relay/postgres/save_seen.sql.h"
#include "relay/postgres/set_back.sql.h"
#include "relay/postgres/show.sql.h"
#include "relay/postgres/sweep.sql.h"
#include "relay/postgres/tables.sql.h"
#include "relay/postgres/take_over.sql.h"
#include "relay/postgres/unmarked.sql.h"
#include "relay/stored_event.h"
#include "relay/wakeup.h"
#include "sql/connection.h"
#include "sql/schema.h"
#include "sql/transaction.h"

namespace baton::relay {
namespace {

namespace postgres_sql = embedded::relay_postgres;

// A process that stands still must not keep others from its rows and its lanes.
constexpr Millis kIdleInTransaction{5'000};
constexpr Millis kIdleSession{5'000};
// For what reads a whole backlog.
constexpr Millis kLongStatement{600'000};
constexpr Millis kPollBehindPooler{100};
constexpr int kMaxRepeats = 5;

// Only the indexes are right for a table of which nearly all rows are done with, and statistics of
// yesterday say otherwise. What is bound says nothing about the plan. Marks count on READ
// COMMITTED.
constexpr const char* kSession =
    "SET search_path = pg_catalog, pg_temp; SET enable_seqscan = off; SET enable_bitmapscan = off;"
    "SET jit = off; SET plan_cache_mode = force_generic_plan;"
    "SET default_transaction_isolation = 'read committed'";

using Numbers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

struct LaneArrays {
  Numbers lanes;
  Numbers tokens;
  void add(const OwnedLane& lane) {
    lanes.push_back(lane.number);
    tokens.push_back(static_cast<std::int64_t>(lane.token));
  }
};

LaneArrays arrays_of(std::span<const OwnedLane> lanes) {
  LaneArrays arrays;
  for (const OwnedLane& lane : lanes) arrays.add(lane);
  return arrays;
}

Error damaged(const std::string& what) {
  return {.code = Code::bad_store, .message = "outbox_lane: " + what + " is not what it should be"};
}

// "3,7,12"
std::set<int> parse_lanes(const std::string& text) {
  std::set<int> lanes;
  for (std::size_t at = 0; at < text.size();) {
    lanes.insert(std::atoi(text.c_str() + at));
    const auto comma = text.find(',', at);
    if (comma == text.npos) break;
    at = comma + 1;
  }
  return lanes;
}

// A statement that is prepared, or behind a transaction pooler one that is not.
class Sql {
 public:
  Sql(std::string_view text, const std::string& schema) : statement_(in_schema(text, schema)) {}

  Result<sql::Rows> run(sql::Connection& on, bool prepared, const sql::Values& values,
                        sql::Connection::By by = {}) const {
    return prepared ? on.query(statement_, values, by) : on.query(statement_.sql(), values, by);
  }

  static std::string in_schema(std::string_view text, const std::string& schema) {
    constexpr std::string_view kPlace = "$schema";
    std::string all(text);
    for (auto at = all.find(kPlace); at != all.npos; at = all.find(kPlace, at + schema.size())) {
      all.replace(at, kPlace.size(), schema);
    }
    return all;
  }

 private:
  sql::Statement statement_;
};

struct Statements {
  explicit Statements(const std::string& schema)
      : take_over(postgres_sql::take_over_sql, schema),
        set_back(postgres_sql::set_back_sql, schema),
        restamp(postgres_sql::restamp_sql, schema),
        in_index(postgres_sql::in_index_sql, schema),
        look(postgres_sql::look_sql, schema),
        first_positions(postgres_sql::first_positions_sql, schema),
        page(postgres_sql::page_sql, schema),
        heads(postgres_sql::heads_sql, schema),
        followers(postgres_sql::followers_sql, schema),
        fetch(postgres_sql::fetch_sql, schema),
        lock_lanes(postgres_sql::lock_lanes_sql, schema),
        mark_sent(postgres_sql::mark_sent_sql, schema),
        mark_sent_in_slot(postgres_sql::mark_sent_in_slot_sql, schema),
        mark_trouble(postgres_sql::mark_trouble_sql, schema),
        unmarked(postgres_sql::unmarked_sql, schema),
        save_seen(postgres_sql::save_seen_sql, schema),
        show(postgres_sql::show_sql, schema),
        sweep(postgres_sql::sweep_sql, schema),
        lock(postgres_sql::lock_sql, schema) {}
  Sql take_over, set_back, restamp, in_index, look, first_positions, page, heads, followers, fetch,
      lock_lanes, mark_sent, mark_sent_in_slot, mark_trouble, unmarked, save_seen, show, sweep,
      lock;
};

class PostgresTables final : public LaneTables {
 public:
  explicit PostgresTables(TablesOptions options) : options_(std::move(options)) {}

  Result<void> open(Deadline by) override;
  void close() override;
  std::string identity() const override { return identity_; }
  Result<TakenLane> take_over(const OwnedLane& lane) override;
  Result<Looked> look(std::span<const LaneRead> reads, std::size_t max_rows,
                      std::size_t max_bytes) override;
  Result<HeadsRead> heads(std::span<const OwnedLane> lanes) override;
  Result<std::vector<Follower>> followers(const OwnedLane& lane,
                                          const std::vector<std::string>& aggregates,
                                          Position behind, std::size_t max_rows) override;
  Result<Events> fetch(int lane, const std::vector<Position>& positions) override;
  Result<std::set<int>> write(std::span<const LaneBatch> batches) override;
  Result<Waiting> show(std::span<const OwnedLane> lanes) override;
  Result<std::int64_t> sweep(const OwnedLane& lane, Millis age) override;
  Result<bool> lock(std::span<const OwnedLane> lanes) override;
  Result<void> unlock() override;
  Result<void> sleep(Instant until, int interrupt) override;
  Result<bool> pause(Instant until, int interrupt) override;
  Result<void> keep_alive() override;

 private:
  using Group = std::vector<const LaneRead*>;

  Result<std::unique_ptr<sql::Connection>> connect(Millis idle_session, Deadline by);
  Result<bool> behind_transaction_pooler(Deadline by);
  Result<void> find_tables(Deadline by);
  Result<void> open_wake(Deadline by);
  Result<void> reopen_wake_if_lost();
  Result<sql::Rows> run(const Sql& statement, const sql::Values& values,
                        sql::Connection::By by = {}) {
    return statement.run(*work_, !pooled_, values, by);
  }
  // In a transaction of its own, with time for a whole backlog.
  Result<sql::Rows> run_long(const Sql& statement, const sql::Values& values);
  Result<void> allow_long_statements();

  Result<void> first_pages(const Group& group, std::size_t max_rows, std::size_t max_bytes,
                           Looked& looked);
  Result<void> next_pages(const Group& group, std::size_t max_rows, std::size_t max_bytes,
                          Looked& looked);
  Result<void> find_first_positions(const Numbers& lanes, const Snapshot& known,
                                    const Snapshot& now);
  Result<std::set<int>> try_write(std::span<const LaneBatch> batches);
  Result<void> mark(std::span<const LaneBatch> batches, const std::set<int>& fenced);

  const TablesOptions options_;
  std::unique_ptr<sql::Connection> work_;
  std::unique_ptr<sql::Connection> wake_;  // LISTEN, and the locks of WakeUp; none if pooled
  std::optional<Statements> statements_;
  bool pooled_ = false;
  std::string cluster_;
  std::string identity_;
  std::map<int, Position> first_positions_;  // of the looks that are being read
  std::map<int, std::int64_t> slots_;        // of the row of a lane that was read last
};

// --- sessions ---

Result<std::unique_ptr<sql::Connection>> PostgresTables::connect(Millis idle_session, Deadline by) {
  return sql::Connection::open(options_.url,
                               {.application = "baton relay",
                                .statement_timeout = options_.statement_timeout,
                                .idle_in_transaction_timeout = kIdleInTransaction,
                                .idle_session_timeout = idle_session},
                               by);
}

Result<void> PostgresTables::open(Deadline by) {
  close();
  auto work = connect(Millis(0), by);
  if (!work) return work.error();
  work_ = std::move(*work);
  auto pooled = behind_transaction_pooler(by);
  if (!pooled) return pooled.error();
  pooled_ = *pooled;
  if (auto found = find_tables(by); !found) return found;
  if (pooled_) return {};
  if (auto set = work_->script(kSession, by); !set) return set;
  return open_wake(by);
}

Result<void> PostgresTables::open_wake(Deadline by) {
  auto wake = connect(kIdleSession, by);
  if (!wake) return wake.error();
  wake_ = std::move(*wake);
  return wake_->listen(std::string(outbox::kWakeChannel), by);
}

// The server ends it when a statement of the other session takes long. It holds nothing while the
// relay works: what was notified meanwhile, the next look finds.
Result<void> PostgresTables::reopen_wake_if_lost() {
  if (pooled_ || wake_->still_there()) return {};
  return open_wake(BootClock::now() + options_.statement_timeout);
}

void PostgresTables::close() {
  work_.reset();
  wake_.reset();
  first_positions_.clear();
  slots_.clear();
}

// As the stores do: in session mode each of two sessions keeps a process of its own.
Result<bool> PostgresTables::behind_transaction_pooler(Deadline by) {
  const auto process = [by](sql::Connection& on) -> Result<std::int64_t> {
    auto rows = on.query("SELECT pg_catalog.pg_backend_pid()", {}, by);
    if (!rows) return rows.error();
    return rows->front().integer(0);
  };
  const auto own = process(*work_);
  if (!own) return own.error();
  if (*own == PQbackendPID(work_->postgres())) return false;
  auto second = connect(Millis(0), by);
  if (!second) return second.error();
  for (int round = 0; round < 8; ++round) {
    const auto other = process(**second);
    if (!other) return other.error();
    const auto again = process(*work_);
    if (!again) return again.error();
    if (*other == *own || *again != *own) return true;
  }
  return false;
}

Result<void> PostgresTables::find_tables(Deadline by) {
  auto found = work_->query(std::string(postgres_sql::tables_sql), {}, by);
  if (!found) return found.error();
  if (found->empty()) return sql::not_installed(outbox::schema(), "this database has no outbox");
  const sql::Row& row = found->front();
  const std::string schema = row.text(0);
  // It is put into texts of SQL.
  if (schema.find_first_of("'$\\") != schema.npos) {
    return Error{.code = Code::bad_store,
                 .message = "the name of the schema " + schema + " has a quote, $ or \\ in it"};
  }
  auto version =
      work_->query("SELECT pg_catalog.max(version) FROM " + schema + ".outbox_version", {}, by);
  if (!version) return version.error();
  if (version->front().integer(0) > outbox::kSchemaVersion) {
    return sql::made_by_newer(outbox::schema(), version->front().integer(0));
  }
  cluster_ = row.text(1);
  identity_ = row.text(2) + "-" + cluster_ + "-" + row.text(3) + "-" + row.text(4);
  statements_.emplace(schema);
  return {};
}

// --- reading ---

Result<void> PostgresTables::allow_long_statements() {
  auto set = work_->query("SELECT pg_catalog.set_config('statement_timeout', '" +
                          std::to_string(kLongStatement.count()) + "', true)");
  if (!set) return set.error();
  return {};
}

Result<sql::Rows> PostgresTables::run_long(const Sql& statement, const sql::Values& values) {
  sql::Rows rows;
  auto done = work_->transaction([&](sql::Transaction&) -> Result<void> {
    if (auto allowed = allow_long_statements(); !allowed) return allowed;
    auto found = run(statement, values, BootClock::now() + kLongStatement);
    if (!found) return found.error();
    rows = std::move(*found);
    return {};
  });
  if (!done) return done.error();
  return rows;
}

Result<TakenLane> PostgresTables::take_over(const OwnedLane& lane) {
  TakenLane taken;
  const sql::Value number = std::int64_t{lane.number};
  auto done = work_->transaction([&](sql::Transaction&) -> Result<void> {
    if (auto allowed = allow_long_statements(); !allowed) return allowed;
    auto raised = run(statements_->take_over, {number, static_cast<std::int64_t>(lane.token)});
    if (!raised) return raised.error();
    if (raised->empty()) {
      return Error{.code = Code::fenced,
                   .message = "lane " + std::to_string(lane.number) +
                              " of the outbox has had an owner with a newer token than " +
                              std::to_string(lane.token) +
                              ": have all relays of this outbox the same lock store (--store) and "
                              "the same --name? If the locks were moved to this one for good: "
                              "UPDATE outbox_lane SET token = 0, while no relay runs"};
    }
    auto set_back = run(statements_->set_back, {number});
    if (!set_back) return set_back.error();
    if (!set_back->empty()) {
      return Error{.code = Code::bad_store,
                   .message = "the sequence of the positions of outbox_events is at " +
                              set_back->front().text(0) + ", behind event " +
                              set_back->front().text(1) +
                              ": set it above the highest position, with setval(), before events "
                              "are added"};
    }
    const sql::Row& row = raised->front();
    const auto seen = row.null(0) ? Snapshot() : Snapshot::parse(row.text(0));
    if (!seen) return damaged("seen");
    const TakeOver plan = relay::take_over(*seen, row.text(1), row.text(2),
                                           std::strtoull(row.text(3).c_str(), nullptr, 10));
    taken.from = plan.from;
    const auto limit = BootClock::now() + kLongStatement;
    if (plan.restamp) {
      auto restamped = run(statements_->restamp, {number}, limit);
      if (!restamped) return restamped.error();
      taken.restamped = restamped->affected();
      // At once, because xids may soon come up to those of the other cluster.
      auto saved = run(statements_->save_seen, {Numbers{lane.number}, Texts{plan.from.text()}});
      if (!saved) return saved.error();
    }
    auto held = run(statements_->in_index, {number}, limit);
    if (!held) return held.error();
    for (const sql::Row& one : *held) taken.in_index.insert(one.text(0));
    return {};
  });
  if (!done) return done.error();
  return taken;
}

Result<Looked> PostgresTables::look(std::span<const LaneRead> reads, std::size_t max_rows,
                                    std::size_t max_bytes) {
  Looked looked;
  Group first;
  Group next;
  for (const LaneRead& read : reads) (read.read.now ? next : first).push_back(&read);
  if (!first.empty()) {
    if (auto done = first_pages(first, max_rows, max_bytes, looked); !done) return done.error();
  }
  if (!next.empty()) {
    if (auto done = next_pages(next, max_rows, max_bytes, looked); !done) return done.error();
  }
  return looked;
}

Result<void> PostgresTables::first_pages(const Group& group, std::size_t max_rows,
                                         std::size_t max_bytes, Looked& looked) {
  LaneArrays arrays;
  std::map<int, const LaneRead*> by_lane;
  Snapshot known = group.front()->read.known;
  for (const LaneRead* read : group) {
    arrays.add(read->lane);
    by_lane[read->lane.number] = read;
    known = known.common(read->read.known);
  }
  auto rows = run(statements_->look,
                  {arrays.lanes, arrays.tokens, known.text(), static_cast<std::int64_t>(max_rows),
                   static_cast<std::int64_t>(max_bytes)});
  if (!rows) return rows.error();
  const auto now = Snapshot::parse(rows->front().text(0));
  if (!now) return damaged("the snapshot of the server");
  const std::set<int> mine = parse_lanes(rows->front().text(1));
  const bool more = rows->size() >= max_rows;
  std::map<int, LanePage> pages;
  for (const LaneRead* read : group) {
    const int lane = read->lane.number;
    first_positions_.erase(lane);
    if (!mine.contains(lane)) {
      looked.fenced.insert(lane);
    } else {
      pages[lane] = {.lane = lane, .page = {.now = *now, .more = more}};
    }
  }
  if (more) {
    if (auto found = find_first_positions(arrays.lanes, known, *now); !found) return found;
  }
  for (sql::Row& row : *rows) {
    if (more) break;
    const std::int64_t slot = row.integer(2 + kStoredColumns);
    auto stored = read_row(row, 2);
    const auto page = stored ? pages.find(stored->lane) : pages.end();
    if (page == pages.end()) continue;
    // One statement reads for all lanes: a row that this lane has read before may come again
    // because another lane has not read it yet.
    if (by_lane.at(stored->lane)->read.known.shows(stored->row.xid)) continue;
    slots_[stored->lane] = slot;
    const Position position = stored->row.position;
    page->second.page.rows.push_back(std::move(stored->row));
    if (stored->event) page->second.events.emplace(position, std::move(*stored->event));
  }
  for (auto& [lane, page] : pages) looked.pages.push_back(std::move(page));
  return {};
}

Result<void> PostgresTables::find_first_positions(const Numbers& lanes, const Snapshot& known,
                                                  const Snapshot& now) {
  auto rows = run_long(statements_->first_positions, {lanes, known.text(), now.text()});
  if (!rows) return rows.error();
  for (const std::int64_t lane : lanes) {
    first_positions_[static_cast<int>(lane)] = std::numeric_limits<Position>::max();
  }
  for (const sql::Row& row : *rows) {
    first_positions_[static_cast<int>(row.integer(0))] = row.integer(1);
  }
  return {};
}

Result<void> PostgresTables::next_pages(const Group& group, std::size_t max_rows,
                                        std::size_t max_bytes, Looked& looked) {
  LaneArrays arrays;
  Texts known;
  Texts now;
  Numbers behind;
  for (const LaneRead* read : group) {
    arrays.add(read->lane);
    known.push_back(read->read.known.text());
    now.push_back(read->read.now->text());
    const auto first = first_positions_.find(read->lane.number);
    behind.push_back(first == first_positions_.end()
                         ? read->read.behind
                         : std::max(read->read.behind, first->second - 1));
  }
  const std::size_t each = std::max<std::size_t>(1, max_rows / group.size());
  const std::size_t share = max_bytes / (each * group.size());  // so all that come have room
  auto rows =
      run(statements_->page, {arrays.lanes, arrays.tokens, known, now, behind,
                              static_cast<std::int64_t>(each), static_cast<std::int64_t>(share)});
  if (!rows) return rows.error();
  std::map<int, LanePage> pages;
  for (sql::Row& row : *rows) {
    const int lane = static_cast<int>(row.integer(0));
    LanePage& page = pages[lane];
    page.lane = lane;
    const std::int64_t slot = row.integer(kStoredColumns);
    auto stored = read_row(row, 0);
    if (!stored) continue;
    slots_[lane] = slot;
    const Position position = stored->row.position;
    page.page.rows.push_back(std::move(stored->row));
    if (stored->event) page.events.emplace(position, std::move(*stored->event));
  }
  for (const LaneRead* read : group) {
    const auto page = pages.find(read->lane.number);
    if (page == pages.end()) {
      looked.fenced.insert(read->lane.number);
      continue;
    }
    page->second.page.now = *read->read.now;
    page->second.page.more = page->second.page.rows.size() >= each;
    looked.pages.push_back(std::move(page->second));
  }
  return {};
}

Result<HeadsRead> PostgresTables::heads(std::span<const OwnedLane> lanes) {
  const LaneArrays arrays = arrays_of(lanes);
  auto rows = run(statements_->heads, {arrays.lanes, arrays.tokens});
  if (!rows) return rows.error();
  std::map<int, std::vector<Head>> heads;
  for (const sql::Row& row : *rows) {
    auto& of_lane = heads[static_cast<int>(row.integer(0))];
    if (row.null(1)) continue;
    of_lane.push_back({.row = {.position = row.integer(1),
                               .xid = static_cast<Xid>(row.integer(2)),
                               .aggregate = row.text(3),
                               .route = route_of(row.text(4), row.text(5)),
                               .bytes = static_cast<std::size_t>(row.integer(7)),
                               .attempts = static_cast<int>(row.integer(6))},
                       .due = is_due(row.boolean(8), row.boolean(9), row.boolean(10)),
                       .held = row.boolean(9)});
  }
  HeadsRead read;
  for (const OwnedLane& lane : lanes) {
    const auto found = heads.find(lane.number);
    if (found == heads.end()) {
      read.fenced.insert(lane.number);
    } else {
      read.lanes.push_back({.lane = lane.number, .heads = std::move(found->second)});
    }
  }
  return read;
}

Result<std::vector<Follower>> PostgresTables::followers(const OwnedLane& lane,
                                                        const std::vector<std::string>& aggregates,
                                                        Position behind, std::size_t max_rows) {
  auto rows =
      run(statements_->followers, {std::int64_t{lane.number}, static_cast<std::int64_t>(lane.token),
                                   Texts(aggregates), behind, static_cast<std::int64_t>(max_rows)});
  if (!rows) return rows.error();
  std::vector<Follower> found;
  for (const sql::Row& row : *rows) {
    found.push_back({.row = {.position = row.integer(0),
                             .xid = static_cast<Xid>(row.integer(1)),
                             .aggregate = row.text(2),
                             .route = route_of(row.text(3), row.text(4)),
                             .bytes = static_cast<std::size_t>(row.integer(6)),
                             .attempts = static_cast<int>(row.integer(5))},
                     .held = row.boolean(7)});
  }
  return found;
}

Result<Events> PostgresTables::fetch(int lane, const std::vector<Position>& positions) {
  auto rows = run(statements_->fetch, {std::int64_t{lane}, Numbers(positions)});
  if (!rows) return rows.error();
  Events found;
  for (sql::Row& row : *rows) {
    auto stored = read_row(row, 0);
    if (stored && stored->event) {
      found.emplace(stored->row.position, std::move(*stored->event));
    }
  }
  return found;
}

// --- writing ---

Result<std::set<int>> PostgresTables::write(std::span<const LaneBatch> batches) {
  for (int tries = 1;; ++tries) {
    auto written = try_write(batches);
    if (written || tries == kMaxRepeats || !work_->usable()) return written;
    // Retention has moved a row to another slot, or an operator was in between.
    const std::string& state = work_->sqlstate();
    const bool moved = state.empty() && written.error().retryable;
    if (!moved && state != "40001" && state != "40P01") return written;
  }
}

Result<std::set<int>> PostgresTables::try_write(std::span<const LaneBatch> batches) {
  LaneArrays arrays;
  std::set<int> fenced;
  for (const LaneBatch& batch : batches) {
    arrays.add(batch.lane);
    fenced.insert(batch.lane.number);
  }
  auto done = work_->transaction([&](sql::Transaction&) -> Result<void> {
    auto locked = run(statements_->lock_lanes, {arrays.lanes, arrays.tokens});
    if (!locked) return locked.error();
    for (const sql::Row& row : *locked) fenced.erase(static_cast<int>(row.integer(0)));
    return mark(batches, fenced);
  });
  if (!done) return done.error();
  return fenced;
}

Result<void> PostgresTables::mark(std::span<const LaneBatch> batches, const std::set<int>& fenced) {
  Numbers sent_lanes, sent_positions;
  std::map<std::int64_t, std::pair<Numbers, Numbers>> by_slot;  // the same
  Numbers lanes, positions, attempts, delays;
  Texts states, whys;
  Numbers seen_lanes;
  Texts seen;
  for (const LaneBatch& batch : batches) {
    const int lane = batch.lane.number;
    if (fenced.contains(lane)) continue;
    for (const Mark& mark : batch.batch.marks) {
      if (mark.kind == Mark::Kind::sent) {
        sent_lanes.push_back(lane);
        sent_positions.push_back(mark.position);
        auto& [lanes_there, positions_there] = by_slot[slots_[lane]];
        lanes_there.push_back(lane);
        positions_there.push_back(mark.position);
        continue;
      }
      const bool failed = mark.kind == Mark::Kind::failed;
      lanes.push_back(lane);
      positions.push_back(mark.position);
      attempts.push_back(mark.attempts);
      states.emplace_back(failed ? outbox::status::failed : outbox::status::pending);
      const bool waits = mark.kind == Mark::Kind::hold || (failed && mark.indexed);
      delays.push_back(waits ? -1 : failed ? -2 : mark.delay.count());
      whys.push_back(mark.error);
    }
    if (batch.batch.seen) {
      seen_lanes.push_back(lane);
      seen.push_back(batch.batch.seen->text());
    }
  }
  std::int64_t marked = 0;
  const auto add = [&](Result<sql::Rows> rows) -> Result<void> {
    if (!rows) return rows.error();
    marked += rows->affected();
    return {};
  };
  const auto sent = static_cast<std::int64_t>(sent_lanes.size());
  for (auto& [slot, rows] : by_slot) {
    const sql::Values there{std::move(rows.first), std::move(rows.second), slot};
    if (auto ok = add(run(statements_->mark_sent_in_slot, there)); !ok) return ok;
  }
  if (marked < sent) {
    if (auto ok = add(run(statements_->mark_sent, {sent_lanes, sent_positions})); !ok) return ok;
  }
  if (!lanes.empty()) {
    if (auto ok =
            add(run(statements_->mark_trouble, {lanes, positions, states, attempts, delays, whys}));
        !ok) {
      return ok;
    }
  }
  // An operator may have discarded some. Any other is a row that was not found and must not be
  // called settled.
  if (marked < static_cast<std::int64_t>(sent_lanes.size() + lanes.size())) {
    lanes.insert(lanes.end(), sent_lanes.begin(), sent_lanes.end());
    positions.insert(positions.end(), sent_positions.begin(), sent_positions.end());
    auto left = run(statements_->unmarked, {lanes, positions});
    if (!left) return left.error();
    if (left->front().integer(0) > 0) {
      return Error{.code = Code::unavailable,
                   .message = "rows of the outbox were moved while they were marked",
                   .retryable = true};
    }
  }
  if (seen_lanes.empty()) return {};
  auto saved = run(statements_->save_seen, {seen_lanes, seen});
  if (!saved) return saved.error();
  return {};
}

Result<Waiting> PostgresTables::show(std::span<const OwnedLane> lanes) {
  // Plans that were made when the table was nearly empty read all of it.
  if (!pooled_) {
    if (auto discarded = work_->query("DISCARD PLANS"); !discarded) return discarded.error();
  }
  const LaneArrays arrays = arrays_of(lanes);
  auto rows = run(statements_->show, {arrays.lanes, arrays.tokens, kMaxCounted});
  if (!rows) return rows.error();
  const sql::Row& row = rows->front();
  return Waiting{.pending = row.integer(0),
                 .held = row.integer(1),
                 .failed = row.integer(2),
                 .oldest = Millis(std::max<std::int64_t>(0, row.integer(3)))};
}

Result<std::int64_t> PostgresTables::sweep(const OwnedLane& lane, Millis age) {
  auto rows = run(statements_->sweep,
                  {std::int64_t{lane.number}, static_cast<std::int64_t>(lane.token), age.count()});
  if (!rows) return rows.error();
  return rows->affected();
}

// --- waking up ---

Result<bool> PostgresTables::lock(std::span<const OwnedLane> lanes) {
  if (pooled_ || lanes.empty()) return true;
  if (auto there = reopen_wake_if_lost(); !there) return there.error();
  auto rows = statements_->lock.run(*wake_, true, {arrays_of(lanes).lanes});
  if (!rows) return rows.error();
  if (rows->front().boolean(0)) return true;
  if (auto unlocked = unlock(); !unlocked) return unlocked.error();
  return false;
}

Result<void> PostgresTables::unlock() {
  if (pooled_) return {};
  auto done = wake_->query("SELECT pg_catalog.pg_advisory_unlock_all()");
  if (!done) return done.error();
  return {};
}

Result<void> PostgresTables::sleep(Instant until, int interrupt) {
  if (pooled_) until = std::min<Instant>(until, BootClock::now() + kPollBehindPooler);
  while (true) {
    if (!pooled_) {
      auto notified = wake_->wait_for_notifications(BootClock::now());
      if (!notified) return notified.error();
      if (!notified->empty()) return {};
    }
    const auto left = std::chrono::ceil<Millis>(until - BootClock::now());
    if (left <= Millis(0)) return {};
    pollfd files[2] = {{interrupt, POLLIN, 0},
                       {pooled_ ? -1 : PQsocket(wake_->postgres()), POLLIN, 0}};
    const auto most = std::min<Millis>(left, kMaxSleep);
    (void)::poll(files, 2, static_cast<int>(most.count()));
    if (files[0].revents != 0) return {};
  }
}

Result<bool> PostgresTables::pause(Instant until, int interrupt) {
  const auto left = std::chrono::ceil<Millis>(until - BootClock::now());
  pollfd file{interrupt, POLLIN, 0};
  if (left > Millis(0)) (void)::poll(&file, 1, static_cast<int>(left.count()));
  return false;
}

Result<void> PostgresTables::keep_alive() {
  if (pooled_) return {};
  if (auto there = reopen_wake_if_lost(); !there) return there;
  auto notified = wake_->wait_for_notifications(BootClock::now());
  if (!notified) return notified.error();
  return {};
}

}  // namespace

std::unique_ptr<LaneTables> postgres_tables(const TablesOptions& options) {
  return std::make_unique<PostgresTables>(options);
}

}  // namespace baton::relay
