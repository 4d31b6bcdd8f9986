#include "outbox/clean.h"

#include <string_view>

#include "core/bad_request.h"
#include "outbox/event_table.h"
#include "outbox/operate.h"
#include "outbox/operate/postgres_move.sql.h"
#include "outbox/operate/postgres_unsettled.sql.h"
#include "outbox/operate/sqlite_clean.sql.h"
#include "outbox/outbox_table.h"

namespace baton::outbox {
namespace {

namespace sql_of = embedded::outbox_operate;

constexpr std::int64_t kRowsAtOnce = 1'000;
constexpr std::int64_t kDay = 86'400'000;

std::int64_t to_millis(WallTime time) {
  return std::chrono::floor<Millis>(time.time_since_epoch()).count();
}

std::int64_t slot_of(std::int64_t day) { return day % kSlots; }

// One slot, on PostgreSQL.
class Slot {
 public:
  Slot(const EventTables& tables, const CleanOptions& options, std::int64_t number,
       std::int64_t keep_after, Cleaned& cleaned)
      : tables_(tables),
        options_(options),
        number_(number),
        keep_after_(keep_after),
        cleaned_(cleaned),
        name_(tables.statement("$table_" + std::to_string(number))) {}

  Result<void> clean(std::int64_t today) {
    auto size = tables_.read("SELECT pg_relation_size('" + name_ + "'::regclass)", {});
    if (!size) return size.error();
    if (size->front().integer(0) == 0) return {};
    if (auto moved = move(today); !moved) return moved;
    // Without a lock at first, so as not to stop anybody for nothing.
    auto why =
        unsettled([&](const auto& sql, const auto& values) { return tables_.read(sql, values); });
    if (!why) return why.error();
    if (!why->empty()) return postpone(*why);
    return empty();
  }

 private:
  Result<void> move(std::int64_t today) {
    const std::string statement = tables_.statement(sql_of::postgres_move_sql);
    for (std::int64_t found = kRowsAtOnce; found == kRowsAtOnce;) {
      auto done = tables_.write([&](sql::Transaction& transaction) -> Result<void> {
        auto rows = transaction.query(statement, {number_, today, kRowsAtOnce});
        if (!rows) return rows.error();
        const auto& row = rows->front();
        found = row.integer(0) + row.integer(1);
        moved_ = row.integer(0);
        discarded_ = row.integer(1);
        return {};
      });
      if (!done) {
        // Somebody has just added an event with the id of one that moves.
        if (tables_.connection().sqlstate() == "23505") return {};
        return done;
      }
      cleaned_.moved += moved_;
      cleaned_.discarded += discarded_;
    }
    return {};
  }

  template <typename Query>
  Result<std::string> unsettled(Query query) const {
    auto rows = query(tables_.statement(sql_of::postgres_unsettled_sql, {{"$slot", name_}}),
                      sql::Values{keep_after_});
    if (!rows) return rows.error();
    return rows->empty() ? std::string() : rows->front().text(0);
  }

  // Looks into the slot once it is locked, when nobody can add or change an event.
  Result<void> empty() {
    std::string why;
    std::int64_t rows = 0;
    auto done = tables_.write([&](sql::Transaction& transaction) -> Result<void> {
      auto locked = transaction.script(
          "SET LOCAL lock_timeout = " + std::to_string(options_.lock_timeout.count()) +
          "; LOCK TABLE ONLY " + name_ + " IN ACCESS EXCLUSIVE MODE");
      if (!locked) {
        if (tables_.connection().sqlstate() == "55P03") why = "is in use";
        return locked;
      }
      auto left = unsettled(
          [&](const auto& sql, const auto& values) { return transaction.query(sql, values); });
      if (!left) return left.error();
      why = std::move(*left);
      if (!why.empty()) return bad_request(why);  // rolls back
      auto counted = transaction.query("SELECT count(*) FROM ONLY " + name_);
      if (!counted) return counted.error();
      rows = counted->front().integer(0);
      return transaction.script("TRUNCATE ONLY " + name_);
    });
    if (!why.empty()) return postpone(why);
    if (!done) return done;
    cleaned_.removed += rows;
    return {};
  }

  Result<void> postpone(const std::string& why) {
    cleaned_.postponed.push_back("slot " + std::to_string(number_) + " " + why);
    return {};
  }

  const EventTables& tables_;
  const CleanOptions& options_;
  const std::int64_t number_;
  const std::int64_t keep_after_;
  Cleaned& cleaned_;
  const std::string name_;
  std::int64_t moved_ = 0;
  std::int64_t discarded_ = 0;
};

Result<std::int64_t> time_of(const EventTables& tables, std::optional<WallTime> now) {
  if (now) return to_millis(*now);
  if (!tables.on_postgres()) return to_millis(std::chrono::system_clock::now());
  auto rows = tables.read("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint", {});
  if (!rows) return rows.error();
  return rows->front().integer(0);
}

Result<Cleaned> clean_postgres(const EventTables& tables, const CleanOptions& options,
                               std::int64_t now) {
  Cleaned cleaned;
  const std::int64_t keep_after = now - options.retention.count();
  const std::int64_t today = now / kDay;
  // The oldest comes first: its slot is that of tomorrow.
  for (std::int64_t day = today - kSlots + 1; (day + 1) * kDay <= keep_after; ++day) {
    Slot slot(tables, options, slot_of(day), keep_after, cleaned);
    if (auto done = slot.clean(slot_of(today)); !done) return done.error();
  }
  return cleaned;
}

Result<Cleaned> clean_sqlite(const EventTables& tables, const CleanOptions& options,
                             std::int64_t now) {
  Cleaned cleaned;
  const std::string statement = tables.statement(sql_of::sqlite_clean_sql);
  for (std::int64_t removed = kRowsAtOnce; removed == kRowsAtOnce;) {
    if (cleaned.removed >= options.most) {
      cleaned.more = true;
      break;
    }
    auto done = tables.write([&](sql::Transaction& transaction) -> Result<void> {
      auto rows = transaction.query(statement, {now - options.retention.count(), kRowsAtOnce});
      if (!rows) return rows.error();
      removed = rows->affected();
      return {};
    });
    if (!done) return done.error();
    cleaned.removed += removed;
  }
  return cleaned;
}

}  // namespace

std::string clean_grants() {
  std::string slots;
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    slots += (slot == 0 ? "outbox_events_" : ", outbox_events_") + std::to_string(slot);
  }
  return "GRANT SELECT, TRUNCATE ON " + slots + " TO …";
}

Result<Cleaned> clean(sql::Connection& connection, const CleanOptions& options,
                      std::optional<WallTime> now) {
  if (options.retention < kMinRetention || options.retention > kMaxRetention) {
    return bad_request("events are kept for 1 hour to 6 days");
  }
  auto tables = EventTables::find(connection, outbox_events());
  if (!tables) return tables.error();
  const auto time = time_of(*tables, now);
  if (!time) return time.error();
  auto cleaned = tables->on_postgres() ? clean_postgres(*tables, options, *time)
                                       : clean_sqlite(*tables, options, *time);
  if (!cleaned && cleaned.error().code == Code::unauthorized) {
    Error error = cleaned.error();
    error.message += "; its owner grants what is missing: " + clean_grants();
    return error;
  }
  return cleaned;
}

}  // namespace baton::outbox
