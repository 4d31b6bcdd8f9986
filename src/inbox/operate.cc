#include "inbox/operate.h"

#include <algorithm>

#include "inbox/inbox_table.h"
#include "inbox/operate/postgres_change.sql.h"
#include "inbox/operate/postgres_health.sql.h"
#include "inbox/operate/sqlite_change.sql.h"
#include "inbox/operate/sqlite_health.sql.h"
#include "inbox/operate/sqlite_ledger.sql.h"

namespace baton::inbox {
namespace {

namespace sql_of = embedded::inbox_operate;

// A retry is taken when it is due; a consumer looks several times a second.
constexpr Millis kOverdue{60'000};

struct RowChange {
  std::string eligible;
  std::string change;
  std::string_view outcome;
};

RowChange row_change(Action action, sql::Kind kind, bool force) {
  if (action == Action::discard) {
    return {"status = 'DEAD'", "status = 'DISCARDED', claim = claim + 1, next_retry_at = NULL",
            outcome::discarded};
  }
  const bool postgres = kind == sql::Kind::postgres;
  const std::string now =
      postgres ? "clock_timestamp()" : "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
  const std::string window = std::to_string(kDeduplicationWindow.count());
  return {"status = 'DEAD'" +
              (force ? std::string()
                     : " AND created_at >= " + now + " - " +
                           (postgres ? window + " * interval '1 millisecond'" : window)),
          "status = 'RETRY', retry_count = 0, claim = claim + 1, next_retry_at = " + now,
          outcome::retrying};
}

std::string in_json(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (const auto number : numbers) text += (text.size() == 1 ? "" : ",") + std::to_string(number);
  return text + "]";
}

}  // namespace

const outbox::EventTable& inbox_events() {
  static const outbox::EventTable table{.name = "inbox_events",
                                        .schema = schema(),
                                        .position = "arrival",
                                        .consumer = "consumer",
                                        .settled = "NULL",
                                        .message = ", queue, message_id, content_type, raw"};
  return table;
}

Result<outbox::EventCount> count_events(sql::Connection& connection, Action action,
                                        const outbox::EventFilter& filter, bool force) {
  return outbox::count_rows(connection, inbox_events(), filter,
                            row_change(action, connection.kind(), force).eligible);
}

Result<std::int64_t> change_events(sql::Connection& connection, Action action,
                                   const outbox::EventFilter& filter, std::int64_t last, bool force,
                                   const outbox::Pace& pace) {
  auto tables = outbox::EventTables::find(connection, inbox_events());
  if (!tables) return tables.error();
  const auto change = row_change(action, connection.kind(), force);
  const std::vector<outbox::EventTables::Part> parts{
      {"$eligible", change.eligible}, {"$change", change.change}, {"$outcome", change.outcome}};
  const bool postgres = tables->on_postgres();
  const std::string statement =
      tables->statement(postgres ? sql_of::postgres_change_sql : sql_of::sqlite_change_sql, parts);
  const std::string ledger = postgres ? "" : tables->statement(sql_of::sqlite_ledger_sql, parts);
  return outbox::change_in_batches(
      *tables, filter, last, pace,
      [&](sql::Transaction& transaction, const sql::Values& values) -> outbox::Positions {
        auto rows = transaction.query(statement, values);
        if (!rows) return rows.error();
        std::vector<std::int64_t> positions;
        for (const auto& row : *rows) positions.push_back(row.integer(0));
        if (!ledger.empty()) {
          auto noted = transaction.query(ledger, {in_json(positions)});
          if (!noted) return noted.error();
        }
        return positions;
      });
}

Result<std::vector<ConsumerHealth>> read_health(sql::Connection& connection,
                                                const std::string& consumer) {
  auto tables = outbox::EventTables::find(connection, inbox_events());
  if (!tables) return tables.error();
  auto rows = tables->read(tables->statement(tables->on_postgres() ? sql_of::postgres_health_sql
                                                                   : sql_of::sqlite_health_sql),
                           {consumer.empty() ? sql::Value() : sql::Value(consumer)});
  if (!rows) return rows.error();
  std::vector<ConsumerHealth> health;
  for (const auto& row : *rows) {
    health.push_back({.consumer = row.text(0),
                      .status = row.text(1),
                      .pile = {.count = row.integer(2), .oldest = Millis(row.integer(3))}});
    if (!row.null(4)) health.back().overdue = Millis(row.integer(4));
  }
  return health;
}

outbox::Verdict judge(const std::vector<ConsumerHealth>& health) {
  std::int64_t dead = 0;
  std::int64_t waiting = 0;
  std::string unserved;
  for (const auto& part : health) {
    if (part.status == status::dead) dead += part.pile.count;
    if (part.status == status::retry || part.status == status::held) waiting += part.pile.count;
    if (part.overdue && *part.overdue > kOverdue) {
      unserved += (unserved.empty() ? "" : ", ") + part.consumer;
    }
  }
  outbox::Verdict verdict;
  const auto add = [&](const std::string& more) {
    verdict.why += (verdict.why.empty() ? "" : "; ") + more;
  };
  if (!unserved.empty()) add("nobody takes the due retries of " + unserved + ": does it run?");
  if (dead > 0) add(std::to_string(dead) + (dead == 1 ? " dead letter" : " dead letters"));
  verdict.stuck = !verdict.why.empty();
  if (waiting > 0) {
    add(std::to_string(waiting) + (waiting == 1 ? " event is" : " events are") + " being retried");
  }
  if (verdict.why.empty()) verdict.why = "nothing is in trouble";
  return verdict;
}

}  // namespace baton::inbox
