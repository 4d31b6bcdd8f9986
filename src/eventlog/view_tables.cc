#include "eventlog/view_tables.h"

#include <algorithm>
#include <cctype>

#include "core/bad_request.h"

namespace baton::eventlog {
namespace {

constexpr std::size_t kMaxIdentifier = 48;

Result<void> run(sql::Transaction& transaction, const std::string& sql) {
  auto done = transaction.query(sql);
  if (!done) return done.error();
  return {};
}

// Where the name that begins at `at` ends, quoted or not.
std::size_t end_of_name(std::string_view sql, std::size_t at) {
  const char quote = sql[at] == '[' ? ']' : sql[at];
  if (quote != '"' && quote != '`' && quote != ']' && quote != '\'') {
    while (at < sql.size() && sql[at] != '(' &&
           std::isspace(static_cast<unsigned char>(sql[at])) == 0)
      ++at;
    return at;
  }
  const auto end = sql.find(quote, at + 1);
  return end == sql.npos ? sql.size() : end + 1;
}

// SQLite keeps statements as they were written from the name on, behind a "CREATE TABLE " or
// "CREATE UNIQUE INDEX " of its own.
std::string renamed(const std::string& sql, std::string_view behind, const std::string& to) {
  const auto at = sql.find(behind) + behind.size();
  return sql.substr(0, at) + to + sql.substr(end_of_name(sql, at));
}

Result<void> copy_in_sqlite(sql::Transaction& transaction, const std::string& table) {
  const std::string copy = copy_of(table);
  auto made = transaction.query(
      "SELECT type, name, sql FROM main.sqlite_schema WHERE tbl_name = $1 COLLATE NOCASE"
      " AND type IN ('table', 'index') AND sql IS NOT NULL ORDER BY type DESC",
      {table});
  if (!made) return made.error();
  if (made->empty()) return bad_request("there is no table " + table);
  for (const sql::Row& row : *made) {
    std::string sql = row.text(2);
    if (row.text(0) == "table") {
      sql = renamed(sql, "CREATE TABLE ", copy);
    } else {
      sql = renamed(sql, " INDEX ", copy + "_" + row.text(1));
      const auto name = sql.find(copy) + copy.size() + 1 + row.text(1).size();
      auto on = name;
      while (on < sql.size() && std::isspace(static_cast<unsigned char>(sql[on])) != 0) ++on;
      on += 2;  // ON
      while (on < sql.size() && std::isspace(static_cast<unsigned char>(sql[on])) != 0) ++on;
      sql = sql.substr(0, on) + copy + sql.substr(end_of_name(sql, on));
    }
    if (auto done = run(transaction, sql); !done) return done;
  }
  return {};
}

// The columns that an INSERT may name.
Result<std::string> columns_of(sql::Transaction& transaction, const std::string& table) {
  const bool postgres = transaction.connection().kind() == sql::Kind::postgres;
  auto rows = postgres ? transaction.query(
                             "SELECT quote_ident(attname) FROM pg_catalog.pg_attribute"
                             " WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped"
                             " AND attgenerated = '' ORDER BY attnum",
                             {table})
                       : transaction.query(
                             "SELECT '\"' || replace(name, '\"', '\"\"') || '\"'"
                             " FROM pragma_table_xinfo($1) WHERE hidden = 0",
                             {table});
  if (!rows) return rows.error();
  std::string columns;
  for (const sql::Row& row : *rows) columns += (columns.empty() ? "" : ", ") + row.text(0);
  return columns;
}

}  // namespace

Result<void> check_identifier(std::string_view what, std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!name.empty() && name.size() <= kMaxIdentifier && (name[0] < '0' || name[0] > '9') &&
      std::all_of(name.begin(), name.end(), good)) {
    return {};
  }
  return bad_request(std::string(what) + " '" + std::string(name) +
                     "' must be an identifier of a to z, 0 to 9 and _, with up to " +
                     std::to_string(kMaxIdentifier) + " characters");
}

std::string copy_of(std::string_view table) { return std::string(table) + "__rebuild"; }

Result<void> make_copies(sql::Transaction& transaction, const std::vector<std::string>& tables) {
  const bool postgres = transaction.connection().kind() == sql::Kind::postgres;
  for (const std::string& table : tables) {
    const std::string copy = copy_of(table);
    if (auto done = run(transaction, "DROP TABLE IF EXISTS " + copy); !done) return done;
    auto made =
        postgres ? run(transaction, "CREATE TABLE " + copy + " (LIKE " + table + " INCLUDING ALL)")
                 : copy_in_sqlite(transaction, table);
    if (!made) return made;
  }
  return {};
}

Result<void> swap_in_copies(sql::Transaction& transaction, const std::vector<std::string>& tables) {
  const bool postgres = transaction.connection().kind() == sql::Kind::postgres;
  if (auto emptied = empty_tables(transaction, tables); !emptied) return emptied;
  for (const std::string& table : tables) {
    const std::string copy = copy_of(table);
    auto columns = columns_of(transaction, table);
    if (!columns) return columns.error();
    auto done = run(transaction, "INSERT INTO " + table + " (" + *columns + ")" +
                                     (postgres ? " OVERRIDING SYSTEM VALUE" : "") + " SELECT " +
                                     *columns + " FROM " + copy);
    if (done) done = run(transaction, "DROP TABLE " + copy);
    if (!done) return done;
  }
  return {};
}

Result<void> empty_tables(sql::Transaction& transaction, const std::vector<std::string>& tables) {
  for (const std::string& table : tables) {
    if (auto done = run(transaction, "DELETE FROM " + table); !done) return done;
  }
  return {};
}

}  // namespace baton::eventlog
