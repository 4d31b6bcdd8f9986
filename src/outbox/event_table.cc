#include "outbox/event_table.h"

#include "core/bad_request.h"
#include "json/json.h"
#include "outbox/operate/postgres_filter.sql.h"
#include "outbox/operate/sqlite_filter.sql.h"

namespace baton::outbox {
namespace {

// The statements below name no schema but that of the tables. Compiling them takes seconds, for
// they touch eight partitions; running them takes milliseconds.
constexpr const char* kSettings =
    "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL jit = off";

std::string replace_all(std::string text, std::string_view place, std::string_view with) {
  for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
    text.replace(at, place.size(), with);
    at += with.size();
  }
  return text;
}

// Empty: there is none.
Result<std::string> find_schema(sql::Connection& connection, const EventTable& table) {
  if (connection.kind() == sql::Kind::sqlite) {
    auto there = connection.query(
        "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = $1",
        {table.schema.version_table()});
    if (!there) return there.error();
    return std::string(there->front().integer(0) == 0 ? "" : "main");
  }
  auto found = connection.query(
      "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_class c"
      " JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
      " WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1::pg_catalog.text)",
      {table.schema.version_table()});
  if (!found) return found.error();
  std::string schema = found->empty() ? "" : found->front().text(0);
  // It is put into texts of SQL. The tables are never made in such a schema.
  if (schema.find_first_of("'$\\") != std::string::npos) {
    return bad_request("the name of the schema " + schema + " has a quote, $ or \\ in it");
  }
  return schema;
}

sql::Value text_or_null(const std::string& text) {
  return text.empty() ? sql::Value() : sql::Value(text);
}

sql::Value list_or_null(sql::Kind kind, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  if (kind == sql::Kind::postgres) return texts;
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

sql::Values filter_values(sql::Kind kind, const EventFilter& filter) {
  return {list_or_null(kind, filter.ids),
          list_or_null(kind, filter.statuses),
          text_or_null(filter.type),
          text_or_null(filter.aggregate),
          text_or_null(filter.error),
          filter.older_than ? sql::Value(filter.older_than->count()) : sql::Value(),
          text_or_null(filter.consumer)};
}

Result<EventTables> EventTables::find(sql::Connection& connection, const EventTable& table) {
  auto schema = find_schema(connection, table);
  if (!schema) return schema.error();
  if (schema->empty())
    return sql::not_installed(table.schema,
                              "this database has no " + std::string(table.schema.name));
  auto version = connection.query("SELECT version FROM " + *schema + "." +
                                  table.schema.version_table() + " ORDER BY version DESC LIMIT 1");
  if (!version) return version.error();
  if (version->empty())
    return sql::not_installed(table.schema,
                              "this database has no " + std::string(table.schema.name));
  const auto installed = version->front().integer(0);
  if (installed > table.schema.version) return sql::made_by_newer(table.schema, installed);
  return EventTables(connection, table, std::move(*schema));
}

std::string EventTables::statement(std::string_view text, const std::vector<Part>& more) const {
  std::string sql(text);
  for (const auto& [place, with] : more) sql = replace_all(std::move(sql), place, with);
  sql = replace_all(std::move(sql), "$filter",
                    on_postgres() ? embedded::outbox_operate::postgres_filter_sql
                                  : embedded::outbox_operate::sqlite_filter_sql);
  sql = replace_all(std::move(sql), "$table", schema_ + "." + std::string(table_->name));
  sql = replace_all(std::move(sql), "$schema", schema_);
  sql = replace_all(std::move(sql), "$position", table_->position);
  sql = replace_all(std::move(sql), "$consumer", table_->consumer);
  return replace_all(std::move(sql), "$settled", table_->settled);
}

Result<sql::Rows> EventTables::read(const std::string& sql, const sql::Values& values) const {
  if (!on_postgres()) return connection_->query(sql, values);
  sql::Rows rows;
  auto done = connection_->transaction([&](sql::Transaction& transaction) -> Result<void> {
    if (auto set = transaction.script(kSettings); !set) return set;
    auto found = transaction.query(sql, values);
    if (!found) return found.error();
    rows = std::move(*found);
    return {};
  });
  if (!done) return done.error();
  return rows;
}

Result<void> EventTables::write(const std::function<Result<void>(sql::Transaction&)>& body) const {
  return connection_->transaction([&](sql::Transaction& transaction) -> Result<void> {
    if (on_postgres()) {
      // The checks of a transaction read what others have committed while it waited for a lock.
      auto begun = transaction.script("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; " +
                                      std::string(kSettings));
      if (!begun) return begun;
    }
    return body(transaction);
  });
}

}  // namespace baton::outbox
