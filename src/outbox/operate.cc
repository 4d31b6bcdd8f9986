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

constexpr int kFirstEventColumn = 9;  // of the statements list

std::optional<std::int64_t> integer_or_none(const sql::Row& row, std::size_t column) {
  if (row.null(column)) return std::nullopt;
  return row.integer(column);
}

EventRow row_of(const sql::Row& row) {
  auto next = integer_or_none(row, 3);
  const bool never = next == kSqliteInfinity;
  if (never) next.reset();
  const auto event = [&](EventColumn column) { return row.text(kFirstEventColumn + column); };
  const std::size_t message = kFirstEventColumn + kEventColumnCount;
  const bool received = row.size() > message;
  return {.position = row.integer(0),
          .status = row.text(1),
          .attempts = row.integer(2),
          .next_retry_ms = next,
          .held = never && row.text(1) == status::pending,
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
          .version = row.integer(kFirstEventColumn + kVersion),
          .queue = received ? row.text(message) : "",
          .message_id = received ? row.text(message + 1) : "",
          .content_type = received ? row.text(message + 2) : "",
          .raw = received ? row.text(message + 3) : ""};
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
  const std::string columns = page.with_payload
                                  ? std::string(kEventColumns) + std::string(table.message)
                                  : without_payload(kEventColumns);
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

Result<EventCount> count_rows(sql::Connection& connection, const EventTable& table,
                              const EventFilter& filter, std::string_view eligible) {
  auto tables = EventTables::find(connection, table);
  if (!tables) return tables.error();
  auto values = filter_values(connection.kind(), filter);
  values.emplace_back(kMaxGroups);
  auto rows = tables->read(tables->statement(tables->on_postgres() ? sql_of::postgres_count_sql
                                                                   : sql_of::sqlite_count_sql,
                                             {{"$eligible", eligible}}),
                           values);
  if (!rows) return rows.error();
  EventCount count;
  for (const auto& row : *rows) {
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
  return count_rows(connection, outbox_events(), filter,
                    change_for(action, connection.kind()).eligible);
}

Result<std::int64_t> change_in_batches(
    const EventTables& tables, const EventFilter& filter, std::int64_t last, const Pace& pace,
    const std::function<Positions(sql::Transaction&, const sql::Values&)>& change) {
  std::int64_t all = 0;
  std::int64_t after = 0;
  while (true) {
    auto values = filter_values(tables.kind(), filter);
    for (const std::int64_t number : {after, last, pace.batch}) values.emplace_back(number);
    std::vector<std::int64_t> changed;
    auto done = tables.write([&](sql::Transaction& transaction) -> Result<void> {
      auto positions = change(transaction, values);
      if (!positions) return positions.error();
      changed = std::move(*positions);
      return {};
    });
    if (!done) return done.error();
    all += static_cast<std::int64_t>(changed.size());
    if (static_cast<std::int64_t>(changed.size()) < pace.batch) return all;
    after = *std::max_element(changed.begin(), changed.end());
    if (pace.after_batch) pace.after_batch(changed.size());
  }
}

Result<std::int64_t> change_events(sql::Connection& connection, Action action,
                                   const EventFilter& filter, std::int64_t last, const Pace& pace) {
  auto tables = EventTables::find(connection, outbox_events());
  if (!tables) return tables.error();
  const auto change = change_for(action, connection.kind());
  const std::string statement = tables->statement(
      tables->on_postgres() ? sql_of::postgres_change_sql : sql_of::sqlite_change_sql,
      {{"$eligible", change.eligible}, {"$change", change.change}});
  return change_in_batches(
      *tables, filter, last, pace,
      [&](sql::Transaction& transaction, const sql::Values& values) -> Positions {
        auto rows = transaction.query(statement, values);
        if (!rows) return rows.error();
        std::vector<std::int64_t> positions;
        for (const auto& row : *rows) positions.push_back(row.integer(0));
        return positions;
      });
}

}  // namespace baton::outbox
