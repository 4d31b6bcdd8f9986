#include "apps/warehouse/source.h"

#include <chrono>

#include "apps/warehouse/payload.h"

namespace baton::warehouse {
namespace {

constexpr const char* kMaxColumn = "4000";  // characters

std::string read_statement(const ObserverType& type, Cursor cursor) {
  const bool by_time = cursor == Cursor::time;
  const std::string at = by_time ? "changed_at" : "written_by";
  const std::string from = by_time ? "$2" : "CAST(CAST($2 AS text) AS xid8)";
  std::string sql = "SELECT " + (by_time ? at : "CAST(" + at + " AS text)") + ", id";
  for (const std::string& column : type.columns) {
    sql += ", substr(CAST(" + column + " AS text), 1, " + kMaxColumn + ")";
  }
  return sql + " FROM " + type.table + " WHERE channel = $1 AND (" + at + ", id) > (" + from +
         ", $3) ORDER BY " + at + ", id LIMIT $4";
}

}  // namespace

std::string_view to_string(Cursor cursor) { return cursor == Cursor::time ? "time" : "xid"; }

Result<std::int64_t> clock_of(sql::Connection& database) {
  if (database.kind() == sql::Kind::sqlite) {  // which runs in this process
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  auto rows =
      database.query("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)");
  if (!rows) return rows.error();
  return rows->front().integer(0);
}

TableSource::TableSource(sql::Connection& database, const ObserverType& type,
                         const SourceOptions& options)
    : database_(database),
      type_(type),
      options_(options),
      read_sql_(read_statement(type, options.cursor)) {}

Result<Horizon> TableSource::horizon() {
  auto clock = clock_of(database_);
  if (!clock) return clock.error();
  if (options_.cursor == Cursor::time) {
    const auto lateness = std::chrono::microseconds(options_.lateness).count();
    return Horizon{.complete_below = *clock - lateness, .clock = *clock};
  }
  if (database_.kind() != sql::Kind::postgres) {
    return Error{.code = Code::unsupported, .message = "cursor: xid needs a PostgreSQL source"};
  }
  auto rows = database_.query("SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text)");
  if (!rows) return rows.error();
  return Horizon{.complete_below = rows->front().integer(0), .clock = *clock};
}

Result<std::vector<SourceRow>> TableSource::read(const std::string& channel, const Position& after,
                                                 std::size_t limit) {
  auto found =
      database_.query(read_sql_, {channel, after.at, after.id, static_cast<std::int64_t>(limit)});
  if (!found) return found.error();
  std::vector<SourceRow> rows;
  rows.reserve(found->size());
  for (const sql::Row& row : *found) {
    rows.push_back({.position = {.at = row.integer(0), .id = row.text(1)},
                    .payload = payload_of(type_, channel, row)});
  }
  return rows;
}

}  // namespace baton::warehouse
