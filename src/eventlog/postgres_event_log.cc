// The event log in a PostgreSQL database, on a connection of the caller.

#include <string>

#include <libpq-fe.h>

#include "baton/event_log.h"
#include "baton/fence.h"
#include "core/bad_request.h"
#include "eventlog/complete_append.h"
#include "eventlog/log_table.h"
#include "eventlog/postgres_functions.sql.h"
#include "eventlog/postgres_tables.sql.h"
#include "sql/postgres_call.h"
#include "sql/postgres_values.h"

namespace baton {
namespace {

constexpr const char* kAppend =
    "SELECT stream_version, last_position FROM event_log_append("
    " $1::text, $2::bigint, $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],"
    " $9::text[], $10::text[], $11::text[], $12::text[], $13::integer[])";

Error error_of(std::string_view code, std::string message) {
  if (code == "23505") return bad_request("the event log has an event with this id already");
  return sql::postgres_error(code, std::move(message), eventlog::schema());
}

// Of the arrays of event_log_append, in its order.
sql::Values columns_of(const std::vector<outbox::CompleteEvent>& events) {
  std::vector<std::vector<std::string>> columns(10);
  std::vector<std::int64_t> versions;
  for (const outbox::CompleteEvent& one : events) {
    const Event& event = *one.event;
    const std::string* const texts[] = {
        &one.id,           &event.type,           &event.aggregate_type,
        &one.exchange,     &one.routing_key,      &event.payload,
        &one.headers,      &event.correlation_id, &event.causation_id,
        &event.traceparent};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].push_back(*texts[i]);
    versions.push_back(event.version);
  }
  sql::Values values;
  for (auto& column : columns) values.emplace_back(std::move(column));
  values.emplace_back(std::move(versions));
  return values;
}

}  // namespace

Result<void> install_event_log(PGconn* connection) {
  const auto schema = eventlog::schema(
      {embedded::eventlog::postgres_tables_sql, embedded::eventlog::postgres_functions_sql});
  if (auto installed = sql::install(connection, schema); !installed) return installed;
  return install_fence(connection);
}

Result<Appended> EventLog::append(PGconn* transaction, std::string_view stream,
                                  std::span<const Event> events,
                                  std::optional<std::int64_t> expected_version) const {
  sql::PostgresCall call(transaction, error_of);
  if (auto open = call.check_transaction(); !open) return open.error();
  eventlog::CompleteAppend append;
  if (auto ok = append.fill(stream, events); !ok) return ok.error();
  sql::Values values = {std::string(stream), std::monostate()};
  if (expected_version) values[1] = *expected_version;
  for (auto& column : columns_of(append.complete)) values.push_back(std::move(column));
  auto answer = call.execute(kAppend, values);
  if (!answer) return answer.error();
  const auto rows = sql::rows_of(std::move(*answer));
  if (rows.front().null(1)) {
    return eventlog::version_conflict(stream, rows.front().integer(0), *expected_version);
  }
  Appended appended{.position = rows.front().integer(1), .version = rows.front().integer(0)};
  for (auto& one : append.complete) appended.ids.push_back(std::move(one.id));
  return appended;
}

Result<std::vector<LoggedEvent>> EventLog::read(PGconn* connection, std::string_view stream,
                                                const ReadStream& what) const {
  if (connection == nullptr) return bad_request("no connection was given");
  if (auto ok = eventlog::check_limit(what); !ok) return ok.error();
  static const std::string kRead = "SELECT " + std::string(eventlog::kPostgresColumns) +
                                   " FROM event_log WHERE stream = $1 AND stream_version > $2"
                                   " ORDER BY stream_version LIMIT $3";
  sql::PostgresCall call(connection, error_of);
  auto answer = call.execute(kRead.c_str(), sql::Values{std::string(stream), what.after_version,
                                                        static_cast<std::int64_t>(what.limit)});
  if (!answer) return answer.error();
  return eventlog::logged_events(sql::rows_of(std::move(*answer)));
}

}  // namespace baton
