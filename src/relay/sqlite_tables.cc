// The outbox in an SQLite file. Of one lane, and with snapshots that are a position: what was
// committed later has a higher one.

#include <algorithm>
#include <chrono>
#include <functional>

#include "outbox/outbox_table.h"
#include "relay/lane_tables.h"
#include "relay/sqlite/fetch.sql.h"
#include "relay/sqlite/followers.sql.h"
#include "relay/sqlite/heads.sql.h"
#include "relay/sqlite/look.sql.h"
#include "relay/sqlite/mark.sql.h"
#include "relay/sqlite/show.sql.h"
#include "relay/stored_event.h"
#include "sql/connection.h"
#include "sql/schema.h"
#include "sql/transaction.h"
#include "store/sqlite/change_watch.h"
#include "store/sqlite/location.h"

namespace baton::relay {
namespace {

namespace sqlite_sql = embedded::relay_sqlite;

// So long after a change of the file its commit may still become visible.
constexpr Millis kSettles{64};

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<Millis>(system_clock::now().time_since_epoch()).count();
}

Snapshot snapshot_at(Position last) {
  const Xid next = static_cast<Xid>(last) + 1;
  return {.xmin = next, .xmax = next};
}

Position last_of(const Snapshot& snapshot) { return static_cast<Position>(snapshot.xmax) - 1; }

Error overtaken(Token token) {
  return {.code = Code::fenced,
          .message = "the outbox has had a relay with a newer token than " + std::to_string(token) +
                     ": have all relays of this outbox the same lock store (--store) and the same "
                     "--name? If the locks were moved to this one for good: UPDATE outbox_lane SET "
                     "token = 0, while no relay runs"};
}

class SqliteTables final : public LaneTables {
 public:
  explicit SqliteTables(TablesOptions options) : options_(std::move(options)) {}

  Result<void> open(Deadline by) override;
  void close() override { database_.reset(); }
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
  // Every look of a new owner reads all PENDING rows: there is no checkpoint that could be wrong.
  Result<std::int64_t> sweep(const OwnedLane&, Millis) override { return std::int64_t{0}; }
  Result<bool> lock(std::span<const OwnedLane> lanes) override;
  Result<void> unlock() override { return {}; }
  Result<void> sleep(Instant until, int interrupt) override;
  Result<bool> pause(Instant until, int interrupt) override;
  Result<void> keep_alive() override { return {}; }

 private:
  [[nodiscard]] bool note_change();
  // In a transaction that holds the write lock; false if the token is not the newest.
  Result<bool> still_mine(Token token);

  const TablesOptions options_;
  std::unique_ptr<sql::Connection> database_;
  store::sqlite::ChangeWatch watch_;
  Instant changed_at_{};
  std::string identity_;
  const sql::Statement look_{std::string(sqlite_sql::look_sql)};
  const sql::Statement heads_{std::string(sqlite_sql::heads_sql)};
  const sql::Statement followers_{std::string(sqlite_sql::followers_sql)};
  const sql::Statement fetch_{std::string(sqlite_sql::fetch_sql)};
  const sql::Statement mark_{std::string(sqlite_sql::mark_sql)};
  const sql::Statement show_{std::string(sqlite_sql::show_sql)};
  const sql::Statement token_{"SELECT token FROM main.outbox_lane WHERE lane = 0"};
};

Result<void> SqliteTables::open(Deadline by) {
  close();
  const auto path = store::sqlite::path_of(options_.url);
  if (!path) return path.error();
  auto opened = sql::Connection::open(
      options_.url, {.create = false, .statement_timeout = options_.statement_timeout}, by);
  if (!opened) return opened.error();
  auto tables = (*opened)->query(
      "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = 'outbox_version'");
  if (!tables) return tables.error();
  if (tables->front().integer(0) == 0) {
    return sql::not_installed(outbox::schema(), *path + " has no outbox");
  }
  auto version = (*opened)->query("SELECT max(version) FROM main.outbox_version");
  if (!version) return version.error();
  if (version->front().integer(0) > outbox::kSchemaVersion) {
    return sql::made_by_newer(outbox::schema(), version->front().integer(0));
  }
  database_ = std::move(*opened);
  const std::string file = store::sqlite::without_links(*path);
  identity_ = file;
  watch_ = store::sqlite::ChangeWatch({file, file + "-wal"});
  return {};
}

Result<bool> SqliteTables::still_mine(Token token) {
  auto rows = database_->query(token_);
  if (!rows) return rows.error();
  return !rows->empty() && rows->front().integer(0) == static_cast<std::int64_t>(token);
}

Result<TakenLane> SqliteTables::take_over(const OwnedLane& lane) {
  TakenLane taken;
  auto done = database_->transaction([&](sql::Transaction& in) -> Result<void> {
    const auto token = static_cast<std::int64_t>(lane.token);
    auto raised = in.query(
        "UPDATE main.outbox_lane SET token = $1, updated_at = $2 WHERE lane = 0 AND token <= $1",
        {token, now_ms()});
    if (!raised) return raised.error();
    if (raised->affected() == 0) return overtaken(lane.token);
    auto held = in.query(
        "SELECT DISTINCT aggregate_id FROM main.outbox_events WHERE next_retry_at IS NOT NULL");
    if (!held) return held.error();
    for (const sql::Row& row : *held) taken.in_index.insert(row.text(0));
    return {};
  });
  if (!done) return done.error();
  return taken;
}

Result<Looked> SqliteTables::look(std::span<const LaneRead> reads, std::size_t max_rows,
                                  std::size_t max_bytes) {
  Looked looked;
  for (const LaneRead& read : reads) {
    const Position behind = std::max(last_of(read.read.known), read.read.behind);
    const Position last = read.read.now ? last_of(*read.read.now) : -1;
    auto rows = database_->query(look_, {behind, last, static_cast<std::int64_t>(max_rows),
                                         static_cast<std::int64_t>(max_bytes)});
    if (!rows) return rows.error();
    const sql::Row& first = rows->front();
    if (first.integer(0) != static_cast<std::int64_t>(read.lane.token)) {
      looked.fenced.insert(read.lane.number);
      continue;
    }
    LanePage page{.lane = read.lane.number, .page = {.now = snapshot_at(first.integer(1))}};
    for (sql::Row& row : *rows) {
      auto stored = read_row(row, 2);
      if (!stored) continue;
      const Position position = stored->row.position;
      page.page.rows.push_back(std::move(stored->row));
      if (stored->event) page.events.emplace(position, std::move(*stored->event));
    }
    page.page.more = page.page.rows.size() >= max_rows;
    looked.pages.push_back(std::move(page));
  }
  return looked;
}

Result<HeadsRead> SqliteTables::heads(std::span<const OwnedLane> lanes) {
  HeadsRead read;
  for (const OwnedLane& lane : lanes) {
    auto rows = database_->query(heads_, {now_ms(), outbox::kSqliteInfinity});
    if (!rows) return rows.error();
    LaneHeads heads{.lane = lane.number, .heads = {}};
    if (rows->front().integer(0) != static_cast<std::int64_t>(lane.token)) {
      read.fenced.insert(lane.number);
      continue;
    }
    for (const sql::Row& row : *rows) {
      if (row.null(1)) continue;
      heads.heads.push_back({.row = {.position = row.integer(1),
                                     .xid = static_cast<Xid>(row.integer(1)),
                                     .aggregate = row.text(2),
                                     .route = route_of(row.text(3), row.text(4)),
                                     .bytes = static_cast<std::size_t>(row.integer(6)),
                                     .attempts = static_cast<int>(row.integer(5))},
                             .due = is_due(row.boolean(7), row.boolean(8), row.boolean(9)),
                             .held = row.boolean(8)});
    }
    read.lanes.push_back(std::move(heads));
  }
  return read;
}

Result<std::vector<Follower>> SqliteTables::followers(const OwnedLane& lane,
                                                      const std::vector<std::string>& aggregates,
                                                      Position behind, std::size_t max_rows) {
  std::vector<Follower> found;
  for (const std::string& aggregate : aggregates) {
    if (found.size() >= max_rows) break;
    auto rows = database_->query(
        followers_, {static_cast<std::int64_t>(lane.token), aggregate, behind,
                     static_cast<std::int64_t>(max_rows - found.size()), outbox::kSqliteInfinity});
    if (!rows) return rows.error();
    for (const sql::Row& row : *rows) {
      found.push_back({.row = {.position = row.integer(0),
                               .xid = static_cast<Xid>(row.integer(0)),
                               .aggregate = row.text(1),
                               .route = route_of(row.text(2), row.text(3)),
                               .bytes = static_cast<std::size_t>(row.integer(5)),
                               .attempts = static_cast<int>(row.integer(4))},
                       .held = row.boolean(6)});
    }
  }
  return found;
}

Result<Events> SqliteTables::fetch(int, const std::vector<Position>& positions) {
  Events found;
  for (const Position position : positions) {
    auto rows = database_->query(fetch_, {position});
    if (!rows) return rows.error();
    if (rows->empty()) continue;
    auto stored = read_row(*rows->begin(), 0);
    if (stored && stored->event) found.emplace(position, std::move(*stored->event));
  }
  return found;
}

Result<std::set<int>> SqliteTables::write(std::span<const LaneBatch> batches) {
  std::set<int> fenced;
  auto done = database_->transaction([&](sql::Transaction& in) -> Result<void> {
    const std::int64_t now = now_ms();
    for (const LaneBatch& batch : batches) {
      auto mine = still_mine(batch.lane.token);
      if (!mine) return mine.error();
      if (!*mine) {
        fenced.insert(batch.lane.number);
        continue;
      }
      for (const Mark& mark : batch.batch.marks) {
        const bool sent = mark.kind == Mark::Kind::sent;
        const bool failed = mark.kind == Mark::Kind::failed;
        sql::Value next;
        if (mark.kind == Mark::Kind::retry) next = now + mark.delay.count();
        if (mark.kind == Mark::Kind::hold || (failed && mark.indexed)) {
          next = outbox::kSqliteInfinity;
        }
        const auto status = sent     ? outbox::status::sent
                            : failed ? outbox::status::failed
                                     : outbox::status::pending;
        auto marked =
            in.query(mark_, {mark.position, std::string(status), std::int64_t{mark.attempts}, next,
                             mark.error.empty() ? sql::Value() : sql::Value(mark.error),
                             sent ? sql::Value(now) : sql::Value()});
        if (!marked) return marked.error();
      }
    }
    return {};
  });
  if (!done) return done.error();
  return fenced;
}

Result<Waiting> SqliteTables::show(std::span<const OwnedLane> lanes) {
  for (const OwnedLane& lane : lanes) {
    auto shown = database_->query(
        "UPDATE main.outbox_lane SET updated_at = $2 WHERE lane = 0 AND token = $1",
        {static_cast<std::int64_t>(lane.token), now_ms()});
    if (!shown) return shown.error();
  }
  auto rows = database_->query(show_, {now_ms(), outbox::kSqliteInfinity, kMaxCounted});
  if (!rows) return rows.error();
  const sql::Row& row = rows->front();
  return Waiting{.pending = row.integer(0),
                 .held = row.integer(1),
                 .failed = row.integer(2),
                 .oldest = Millis(std::max<std::int64_t>(0, row.integer(3)))};
}

bool SqliteTables::note_change() {
  if (!watch_.changed()) return false;
  changed_at_ = BootClock::now();
  return true;
}

// A change of the file is a writer at work until its commit must have become visible.
Result<bool> SqliteTables::lock(std::span<const OwnedLane>) {
  (void)note_change();
  return BootClock::now() - changed_at_ > kSettles;
}

Result<void> SqliteTables::sleep(Instant until, int interrupt) {
  watch_.wait(until, interrupt);
  (void)note_change();
  return {};
}

Result<bool> SqliteTables::pause(Instant until, int interrupt) {
  watch_.wait(until, interrupt);
  return note_change();
}

}  // namespace

std::unique_ptr<LaneTables> sqlite_tables(const TablesOptions& options) {
  return std::make_unique<SqliteTables>(options);
}

}  // namespace baton::relay
