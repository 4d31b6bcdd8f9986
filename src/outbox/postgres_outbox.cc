// The outbox in a PostgreSQL database, on a connection of the caller.

#include <string>

#include <libpq-fe.h>

#include "baton/outbox.h"
#include "core/bad_request.h"
#include "outbox/complete_event.h"
#include "outbox/outbox_table.h"
#include "outbox/postgres_functions.sql.h"
#include "outbox/postgres_tables.sql.h"
#include "sql/postgres_call.h"
#include "sql/schema.h"

namespace baton {
namespace {

using outbox::CompleteEvent;

// The server takes no more than 1 GiB in one statement.
constexpr std::size_t kMaxBytesAtOnce = std::size_t{256} << 20;

// Types that are sent with the values spare the server a cast of each.
constexpr Oid kText = 25;
constexpr Oid kUuid = 2950;
constexpr Oid kInteger = 23;
constexpr Oid kBoolean = 16;
constexpr const char* kAdd =
    "SELECT outbox_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
constexpr Oid kAddTypes[] = {kUuid, kText, kText, kText, kText,    kText,   kText,
                             kText, kText, kText, kText, kInteger, kBoolean};
constexpr const char* kAddAll =
    "SELECT outbox_put_all($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],"
    " $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::integer[], $13::boolean)";

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

Error error_of(std::string_view code, std::string message) {
  if (code == "23505") return bad_request("the outbox has an event with this id already");
  Error error = sql::postgres_error(code, std::move(message), outbox::schema());
  if (code == "42501") {
    error.message += "; a role needs USAGE on the schema and INSERT on outbox_events to add events";
  }
  return error;
}

}  // namespace

Result<void> install_outbox(PGconn* connection) {
  return sql::install(connection, outbox::schema({embedded::outbox::postgres_tables_sql,
                                                  embedded::outbox::postgres_functions_sql}));
}

Result<std::string> Outbox::add(PGconn* transaction, const Event& event) const {
  sql::PostgresCall call(transaction, error_of);
  if (auto open = call.check_transaction(); !open) return open.error();
  auto row = outbox::complete_to_publish(event, options_);
  if (!row) return row.error();
  const std::string version = std::to_string(event.version);
  // Bound where they are: a payload may have a MiB.
  const char* const values[] = {row->id.c_str(),
                                event.type.c_str(),
                                event.aggregate_type.c_str(),
                                event.aggregate.c_str(),
                                row->exchange.c_str(),
                                row->routing_key.c_str(),
                                event.payload.c_str(),
                                row->headers.c_str(),
                                or_null(event.correlation_id),
                                or_null(event.causation_id),
                                or_null(event.traceparent),
                                version.c_str(),
                                options_.quiet ? "t" : "f"};
  static_assert(std::size(values) == std::size(kAddTypes));
  static const sql::Statement add_statement(kAdd);
  auto added = options_.prepared ? call.execute(add_statement, kAddTypes, values, std::size(values))
                                 : call.execute(kAdd, kAddTypes, values, std::size(values));
  if (!added) return added.error();
  return std::move(row->id);
}

Result<std::vector<std::string>> Outbox::add_all(PGconn* transaction,
                                                 std::span<const Event> events) const {
  sql::PostgresCall call(transaction, error_of);
  if (auto open = call.check_transaction(); !open) return open.error();
  if (events.empty()) return std::vector<std::string>();
  std::vector<std::vector<std::string>> columns(outbox::kVersion);
  std::vector<std::int64_t> versions;
  std::size_t bytes = 0;
  for (const Event& event : events) {
    auto row = outbox::complete_to_publish(event, options_);
    if (!row) return row.error();
    bytes += event.payload.size() + row->headers.size();
    if (bytes > kMaxBytesAtOnce) {
      return bad_request("these events have more than " + std::to_string(kMaxBytesAtOnce) +
                         " bytes; add them in several calls");
    }
    columns[outbox::kEventId].push_back(std::move(row->id));
    columns[outbox::kType].push_back(event.type);
    columns[outbox::kAggregateType].push_back(event.aggregate_type);
    columns[outbox::kAggregateId].push_back(event.aggregate);
    columns[outbox::kExchange].push_back(std::move(row->exchange));
    columns[outbox::kRoutingKey].push_back(std::move(row->routing_key));
    columns[outbox::kPayload].push_back(event.payload);
    columns[outbox::kHeaders].push_back(std::move(row->headers));
    columns[outbox::kCorrelationId].push_back(event.correlation_id);
    columns[outbox::kCausationId].push_back(event.causation_id);
    columns[outbox::kTraceparent].push_back(event.traceparent);
    versions.push_back(event.version);
  }
  std::vector<std::string> ids = columns[outbox::kEventId];
  sql::Values values;
  for (auto& column : columns) values.emplace_back(std::move(column));
  values.emplace_back(std::move(versions));
  values.emplace_back(options_.quiet);
  if (auto added = call.execute(kAddAll, values); !added) return added.error();
  return ids;
}

}  // namespace baton
