#include "apps/documents/common/tx.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <libpq-fe.h>
#include <sqlite3.h>

#include "event/message_headers.h"
#include "sql/postgres_call.h"

namespace baton::documents {
namespace {

using sql::Row;
using sql::Rows;
using sql::Values;

[[noreturn]] void fail(std::string message) {
  throw SqlError(Error{.code = Code::bad_request, .message = std::move(message)});
}

Rows rows_of(PGresult* answer) {
  std::vector<Row> rows;
  for (int i = 0; i < PQntuples(answer); ++i) {
    Values row;
    for (int j = 0; j < PQnfields(answer); ++j) {
      if (PQgetisnull(answer, i, j) != 0) {
        row.emplace_back();
      } else {
        row.emplace_back(std::string(PQgetvalue(answer, i, j),
                                     static_cast<std::size_t>(PQgetlength(answer, i, j))));
      }
    }
    rows.emplace_back(std::move(row));
  }
  const std::string_view affected = PQcmdTuples(answer);
  return {std::move(rows), affected.empty() ? 0 : std::stoll(std::string(affected))};
}

void bind(sqlite3* database, sqlite3_stmt* statement, const Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = "$" + std::to_string(i + 1);
    const int index = sqlite3_bind_parameter_index(statement, name.c_str());
    int code = SQLITE_MISUSE;
    if (std::holds_alternative<std::monostate>(values[i])) {
      code = sqlite3_bind_null(statement, index);
    } else if (const auto* whole = std::get_if<std::int64_t>(&values[i])) {
      code = sqlite3_bind_int64(statement, index, *whole);
    } else if (const auto* text = std::get_if<std::string>(&values[i])) {
      code = sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    }
    if (code != SQLITE_OK) fail("cannot bind " + name + ": " + sqlite3_errmsg(database));
  }
}

sql::Value read(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_NULL: return {};
    default: {
      const auto* data = sqlite3_column_text(statement, column);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return std::string(reinterpret_cast<const char*>(data), size);
    }
  }
}

Rows on(sqlite3* database, const std::string& text, const Values& values) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database, text.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    fail(sqlite3_errmsg(database));
  }
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(raw,
                                                                             &sqlite3_finalize);
  bind(database, raw, values);
  const auto before = sqlite3_total_changes64(database);
  std::vector<Row> rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    Values row;
    for (int i = 0; i < sqlite3_column_count(raw); ++i) row.push_back(read(raw, i));
    rows.emplace_back(std::move(row));
  }
  if (code != SQLITE_DONE) fail(sqlite3_errmsg(database));
  const bool wrote = sqlite3_total_changes64(database) != before;
  return {std::move(rows), wrote ? sqlite3_changes64(database) : 0};
}

}  // namespace

Rows Tx::query(const std::string& sql, const Values& values) const {
  if (connection_ != nullptr) return need(connection_->query(sql, values));
  if (sqlite_ != nullptr) return on(sqlite_, sql, values);
  return rows_of(need(sql::PostgresCall(postgres_).execute(sql.c_str(), values)).get());
}

Rows Tx::query(const sql::Statement& sql, const Values& values) const {
  if (connection_ != nullptr) return need(connection_->query(sql, values));
  if (sqlite_ != nullptr) return on(sqlite_, sql.sql(), values);
  return rows_of(need(sql::PostgresCall(postgres_).execute(sql, values)).get());
}

bool Tx::on_postgres() const {
  return connection_ != nullptr ? connection_->kind() == sql::Kind::postgres : postgres_ != nullptr;
}

std::string Tx::time(const std::string& column) const {
  if (!on_postgres()) return column;
  return "to_char(" + column + R"( AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))";
}

std::string now_text() {
  return event::print_time(
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now()));
}

double age_in_seconds(const std::string& time) {
  const auto since = event::parse_time(time);
  if (!since) return 0;
  const std::chrono::duration<double> age = std::chrono::system_clock::now() - *since;
  return std::max(age.count(), 0.0);
}

}  // namespace baton::documents
