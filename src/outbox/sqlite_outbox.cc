// The outbox in an SQLite file, on a connection of the caller.

#include <string>

#include <sqlite3.h>

#include "baton/outbox.h"
#include "core/bad_request.h"
#include "outbox/complete_event.h"
#include "outbox/outbox_table.h"
#include "outbox/sqlite_add.sql.h"
#include "outbox/sqlite_tables.sql.h"
#include "sql/sqlite_call.h"
#include "store/sqlite/database.h"

namespace baton {
namespace {

using outbox::CompleteEvent;
using store::sqlite::Statement;

// Why an event could not be added, if the outbox itself is the reason.
Error explained(sqlite3* database, Error error) {
  if (sqlite3_extended_errcode(database) == SQLITE_BUSY_SNAPSHOT) {
    error.message =
        "others have written since this transaction first read: roll back and repeat all of it, "
        "with BEGIN IMMEDIATE";
    return error;
  }
  if (error.retryable) return error;
  if ((sqlite3_errcode(database) & 0xff) == SQLITE_CONSTRAINT) {
    return bad_request("the outbox has an event with this id already");
  }
  const auto version = sql::installed_version(database, outbox::schema());
  if (!version) return error;
  if (*version == 0) return sql::not_installed(outbox::schema(), "this database has no outbox");
  if (*version > outbox::kSchemaVersion) return sql::made_by_newer(outbox::schema(), *version);
  return error;
}

Result<void> insert(sqlite3* database, Statement& statement, const CompleteEvent& row) {
  const Event& event = *row.event;
  auto added = statement
                   .start(row.id, event.type, event.aggregate_type, event.aggregate, row.exchange,
                          row.routing_key, event.payload, row.headers, event.correlation_id,
                          event.causation_id, event.traceparent, std::int64_t{event.version})
                   .step();
  if (!added) return explained(database, added.error());
  // The statement inserts nothing into the tables of a newer version.
  if (!*added) {
    const auto version = sql::installed_version(database, outbox::schema());
    return version ? sql::made_by_newer(outbox::schema(), *version) : version.error();
  }
  return statement.run();
}

}  // namespace

Result<void> install_outbox(sqlite3* database) {
  return sql::install(database, outbox::schema({embedded::outbox::sqlite_tables_sql}));
}

Result<std::string> Outbox::add(sqlite3* transaction, const Event& event) const {
  auto ids = add_all(transaction, std::span(&event, 1));
  if (!ids) return ids.error();
  return std::move(ids->front());
}

Result<std::vector<std::string>> Outbox::add_all(sqlite3* transaction,
                                                 std::span<const Event> events) const {
  if (auto open = sql::check_transaction(transaction); !open) return open.error();
  std::vector<CompleteEvent> rows;
  rows.reserve(events.size());
  for (const Event& event : events) {
    auto row = outbox::complete_to_publish(event, options_);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
  std::vector<std::string> ids;
  if (rows.empty()) return ids;
  auto statement = Statement::prepare(transaction, embedded::outbox::sqlite_add_sql);
  if (!statement) return explained(transaction, statement.error());
  const auto insert_all = [&]() -> Result<void> {
    for (const CompleteEvent& row : rows) {
      if (auto added = insert(transaction, *statement, row); !added) return added;
    }
    return {};
  };
  // A single statement needs no savepoint.
  const auto added =
      rows.size() == 1 ? insert_all() : sql::all_or_nothing(transaction, "", insert_all);
  if (!added) return added.error();
  ids.reserve(rows.size());
  for (CompleteEvent& row : rows) ids.push_back(std::move(row.id));
  return ids;
}

}  // namespace baton
