// The event log in an SQLite file, on a connection of the caller.

#include <string>

#include <sqlite3.h>

#include "baton/event_log.h"
#include "baton/fence.h"
#include "core/bad_request.h"
#include "eventlog/complete_append.h"
#include "eventlog/log_table.h"
#include "eventlog/sqlite_tables.sql.h"
#include "sql/schema.h"
#include "sql/sqlite_call.h"
#include "store/sqlite/database.h"

namespace baton {
namespace {

using store::sqlite::Rewind;
using store::sqlite::Statement;

constexpr std::string_view kLockStream =
    "INSERT INTO main.event_stream (stream, version) VALUES (?1, ?2)"
    " ON CONFLICT (stream) DO UPDATE SET version = version + ?2 RETURNING version";
constexpr std::string_view kInsert =
    "INSERT INTO main.event_log (stream, stream_version, event_id, type, aggregate_type, exchange,"
    " routing_key, payload, headers, correlation_id, causation_id, traceparent, version)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, nullif(?10, ''), nullif(?11, ''),"
    " nullif(?12, ''), ?13) RETURNING position";

// Why events could not be appended, if the log itself is the reason.
Error explained(sqlite3* database, Error error) {
  if (error.retryable) return error;
  if ((sqlite3_errcode(database) & 0xff) == SQLITE_CONSTRAINT) {
    return bad_request("the event log has an event with this id already");
  }
  const auto version = sql::installed_version(database, eventlog::schema());
  if (!version) return error;
  if (*version == 0) {
    return sql::not_installed(eventlog::schema(), "this database has no event log");
  }
  if (*version > eventlog::schema().version) {
    return sql::made_by_newer(eventlog::schema(), *version);
  }
  return error;
}

// The first column of the one row that the statement gives.
Result<std::int64_t> one_number(Statement& statement) {
  const Rewind rewind(statement);
  auto row = statement.step();
  if (!row) return row.error();
  const std::int64_t number = *row ? statement.integer(0) : 0;
  if (auto done = statement.step(); !done) return done.error();
  return number;
}

Result<Appended> insert_all(sqlite3* database, std::string_view stream,
                            const eventlog::CompleteAppend& append,
                            std::optional<std::int64_t> expected) {
  const auto count = static_cast<std::int64_t>(append.complete.size());
  auto lock = Statement::prepare(database, kLockStream);
  if (!lock) return lock.error();
  const auto version = one_number(lock->start(stream, count));
  if (!version) return version.error();
  const std::int64_t before = *version - count;
  if (expected && *expected != before) {
    return eventlog::version_conflict(stream, before, *expected);
  }
  auto insert = Statement::prepare(database, kInsert);
  if (!insert) return insert.error();
  Appended appended{.position = 0, .version = before};
  for (const outbox::CompleteEvent& one : append.complete) {
    const Event& event = *one.event;
    insert->start(stream, ++appended.version, one.id, event.type, event.aggregate_type,
                  one.exchange, one.routing_key, event.payload, one.headers, event.correlation_id,
                  event.causation_id, event.traceparent, std::int64_t{event.version});
    const auto position = one_number(*insert);
    if (!position) return position.error();
    appended.position = *position;
    appended.ids.push_back(one.id);
  }
  return appended;
}

// As rows_of() makes them of PostgreSQL's.
Result<sql::Rows> rows_of(Statement& statement) {
  constexpr int kVersion = 13;
  std::vector<sql::Row> rows;
  const Rewind rewind(statement);
  for (auto row = statement.step();; row = statement.step()) {
    if (!row) return row.error();
    if (!*row) return sql::Rows(std::move(rows), 0);
    sql::Values values;
    for (int column = 0; column <= kVersion + 1; ++column) {
      if (column < 2 || column >= kVersion) {
        values.emplace_back(statement.integer(column));
      } else {
        values.emplace_back(std::string(statement.text(column)));
      }
    }
    rows.emplace_back(std::move(values));
  }
}

}  // namespace

Result<void> install_event_log(sqlite3* database) {
  const auto schema = eventlog::schema({embedded::eventlog::sqlite_tables_sql});
  if (auto installed = sql::install(database, schema); !installed) return installed;
  return install_fence(database);
}

Result<Appended> EventLog::append(sqlite3* transaction, std::string_view stream,
                                  std::span<const Event> events,
                                  std::optional<std::int64_t> expected_version) const {
  if (auto open = sql::check_transaction(transaction); !open) return open.error();
  eventlog::CompleteAppend append;
  if (auto ok = append.fill(stream, events); !ok) return ok.error();
  Appended appended;
  const auto done = sql::all_or_nothing(transaction, "", [&]() -> Result<void> {
    auto inserted = insert_all(transaction, stream, append, expected_version);
    if (!inserted) {
      if (inserted.error().code == Code::superseded) return inserted.error();
      return explained(transaction, inserted.error());
    }
    appended = std::move(*inserted);
    return {};
  });
  if (!done) return done.error();
  return appended;
}

Result<std::vector<LoggedEvent>> EventLog::read(sqlite3* database, std::string_view stream,
                                                const ReadStream& what) const {
  if (database == nullptr) return bad_request("no database was given");
  if (auto ok = eventlog::check_limit(what); !ok) return ok.error();
  static const std::string kRead = "SELECT " + std::string(eventlog::kSqliteColumns) +
                                   " FROM main.event_log WHERE stream = ?1 AND stream_version > ?2"
                                   " ORDER BY stream_version LIMIT ?3";
  auto statement = Statement::prepare(database, kRead);
  if (!statement) return explained(database, statement.error());
  auto rows =
      rows_of(statement->start(stream, what.after_version, static_cast<std::int64_t>(what.limit)));
  if (!rows) return rows.error();
  return eventlog::logged_events(*rows);
}

}  // namespace baton
