#include "outbox/operate.h"

#include <algorithm>

#include "outbox/operate/postgres_change.sql.h"
#include "outbox/operate/postgres_count.sql.h"
#include "outbox/operate/postgres_list.sql.h"
#include "outbox/operate/sqlite_change.sql.h"
#include "outbox/operate/sqlite_count.sql.h"
#include "outbox/operate/sqlite_list.sql.h"
#include "outbox/outbox_table.h"

namespace baton::outbox {

namespace sql_of = embedded::outbox_operate;

const EventTable& outbox_events() {
  static const EventTable table{.name = "outbox_events",
                                .schema = schema(),
                                .position = "position",
                                .consumer = "NULL",
                                .settled = "sent_at"};
  return table;
}

namespace {

constexpr std::int64_t kBatch = 1'000;
constexpr int kFirstEventColumn = 9;  // of the statements list

std::optional<std::int64_t> integer_or_none(const sql::Row& row, std::size_t column) {
  if (row.null(column)) return std::nullopt;
  return row.integer(column);
}

EventRow row_of(const sql::Row& row) {
  const auto event = [&](EventColumn column) { return row.text(kFirstEventColumn + column); };
  return {.position = row.integer(0),
          .status = row.text(1),
          .attempts = row.integer(2),
          .next_retry_ms = integer_or_none(row, 3),
          .error = row.text(4),
          .created_ms = row.integer(5),
          .now_ms = row.integer(6),
          .settled_ms = integer_or_none(row, 7),
          .consumer = row.text(8),
          .id = event(kEventId),
          .type = event(kType),
          .aggregate_type = event(kAggregateType),
          .aggregate = event(kAggregateId),
          .exchange = event(kExchange),
          .routing_key = event(kRoutingKey),
          .payload = event(kPayload),
          .headers = event(kHeaders),
          .correlation_id = event(kCorrelationId),
          .causation_id = event(kCausationId),
          .traceparent = event(kTraceparent),
          .version = row.integer(kFirstEventColumn + kVersion)};
}

// Payloads may have a MiB each: lists leave them in the database.
std::string without_payload(std::string_view columns) {
  std::string text(columns);
  constexpr std::string_view kBoth = " payload, headers,";
  if (const auto at = text.find(kBoth); at != std::string::npos) {
    text.replace(at, kBoth.size(), " '', '',");
  }
  return text;
}

struct Change {
  std::string eligible;
  std::string change;
};

// Held events have no time of their own, and must not get one: they would be due before the events
// that they wait for. What is PENDING and outside of the retry index is the relay's.
Change change_for(Action action, sql::Kind kind) {
  const bool postgres = kind == sql::Kind::postgres;
  const std::string infinity = postgres ? "'infinity'" : std::to_string(kSqliteInfinity);
  const std::string now =
      postgres ? "clock_timestamp()" : "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
  if (action == Action::discard) {
    return {"(status = 'FAILED' OR status = 'PENDING' AND next_retry_at IS NOT NULL)",
            "status = 'DISCARDED', next_retry_at = NULL"};
  }
  return {"(status = 'FAILED' OR status = 'PENDING' AND next_retry_at < " + infinity + ")",
          "status = 'PENDING', retry_count = 0, next_retry_at = " + now};
}

}  // namespace

Result<std::vector<EventRow>> list_events(sql::Connection& connection, const EventTable& table,
                                          const EventFilter& filter, const EventPage& page) {
  auto tables = EventTables::find(connection, table);
  if (!tables) return tables.error();
  const std::string columns =
      page.with_payload ? std::string(kEventColumns) : without_payload(kEventColumns);
  auto values = filter_values(connection.kind(), filter);
  values.emplace_back(page.after);
  values.emplace_back(page.limit);
  auto found = tables->read(
      tables->statement(tables->on_postgres() ? sql_of::postgres_list_sql : sql_of::sqlite_list_sql,
                        {{"$settled", tables->on_postgres() && table.settled != "NULL"
                                          ? "floor(extract(epoch FROM $settled) * 1000)::bigint"
                                          : "$settled"},
                         {"$event", columns}}),
      values);
  if (!found) return found.error();
  std::vector<EventRow> rows;
  rows.reserve(found->size());
  for (const auto& row : *found) rows.push_back(row_of(row));
  return rows;
}

EventCount counted(const sql::Rows& rows) {
  EventCount count;
  for (const auto& row : rows) {
    count.count = row.integer(4);
    count.last = row.integer(5);
    count.groups.push_back({.status = row.text(0),
                            .error = row.text(1),
                            .count = row.integer(2),
                            .oldest = Millis(row.integer(3)),
                            .consumer = row.text(6)});
  }
  return count;
}

Result<EventCount> count_events(sql::Connection& connection, Action action,
                                const EventFilter& filter) {
  auto tables = EventTables::find(connection, outbox_events());
  if (!tables) return tables.error();
  const auto change = change_for(action, connection.kind());
  auto values = filter_values(connection.kind(), filter);
  values.emplace_back(kMaxGroups);
  auto rows = tables->read(tables->statement(tables->on_postgres() ? sql_of::postgres_count_sql
                                                                   : sql_of::sqlite_count_sql,
                                             {{"$eligible", change.eligible}}),
                           values);
  if (!rows) return rows.error();
  return counted(*rows);
}

Result<std::int64_t> change_events(sql::Connection& connection, Action action,
                                   const EventFilter& filter, std::int64_t last) {
  auto tables = EventTables::find(connection, outbox_events());
  if (!tables) return tables.error();
  const auto change = change_for(action, connection.kind());
  const std::string statement = tables->statement(
      tables->on_postgres() ? sql_of::postgres_change_sql : sql_of::sqlite_change_sql,
      {{"$eligible", change.eligible}, {"$change", change.change}});
  std::int64_t all = 0;
  std::int64_t after = 0;
  for (std::size_t changed = kBatch; changed == kBatch;) {
    auto values = filter_values(connection.kind(), filter);
    for (const std::int64_t number : {after, last, kBatch}) values.emplace_back(number);
    auto done = tables->write([&](sql::Transaction& transaction) -> Result<void> {
      auto rows = transaction.query(statement, values);
      if (!rows) return rows.error();
      changed = rows->size();
      for (const auto& row : *rows) after = std::max(after, row.integer(0));
      return {};
    });
    if (!done) return done.error();
    all += static_cast<std::int64_t>(changed);
  }
  return all;
}

}  // namespace baton::outbox
