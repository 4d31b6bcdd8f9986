#pragma once

// A table of events that operators look at: the outbox of a service, or the events in trouble of
// its consumers, which mirror it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/export.h"
#include "baton/result.h"
#include "sql/schema.h"
#include "sql/transaction.h"

namespace baton::outbox {

// What the shared statements (operate/*.sql) say differently for each table.
struct EventTable {
  std::string_view name;      // outbox_events
  sql::Schema schema;         // outbox
  std::string_view position;  // the column of its order
  std::string_view consumer;  // the column that names the consumer, or NULL
  std::string_view settled;   // when it was sent, or NULL
  std::string_view message;   // more columns of what was received, behind a comma; or none
};

// Which events; all that is given must apply.
struct EventFilter {
  std::vector<std::string> ids;
  std::vector<std::string> statuses;
  std::string type;
  std::string aggregate;
  std::string error;                 // part of the last error, in any case
  std::optional<Millis> older_than;  // added longer ago
  std::string consumer;              // of the inbox

  [[nodiscard]] bool empty() const {
    return ids.empty() && statuses.empty() && type.empty() && aggregate.empty() && error.empty() &&
           !older_than && consumer.empty();
  }
};

// $1 to $7 of the filter. SQLite has no arrays: there lists are JSON.
inline constexpr int kFilterValues = 7;
[[nodiscard]] sql::Values filter_values(sql::Kind kind, const EventFilter& filter);

// The tables of a database: which schema they are in.
class BATON_EXPORT EventTables {
 public:
  // `bad_store`: there are none, and the message says what makes them; or they were made by a newer
  // Baton.
  [[nodiscard]] static Result<EventTables> find(sql::Connection& connection,
                                                const EventTable& table);

  // A statement with $table, $schema, $filter, $position, $consumer and $settled put in, and what
  // else its caller names.
  struct Part {
    std::string_view place;
    std::string_view text;
  };
  [[nodiscard]] std::string statement(std::string_view text,
                                      const std::vector<Part>& more = {}) const;

  // Runs a statement that only reads. PostgreSQL: it looks up no name in schemas of others.
  [[nodiscard]] Result<sql::Rows> read(const std::string& sql, const sql::Values& values) const;

  // The same for what writes.
  [[nodiscard]] Result<void> write(
      const std::function<Result<void>(sql::Transaction&)>& body) const;

  [[nodiscard]] sql::Kind kind() const { return connection_->kind(); }
  [[nodiscard]] bool on_postgres() const { return kind() == sql::Kind::postgres; }
  [[nodiscard]] sql::Connection& connection() const { return *connection_; }

 private:
  EventTables(sql::Connection& connection, const EventTable& table, std::string schema)
      : connection_(&connection), table_(&table), schema_(std::move(schema)) {}

  sql::Connection* connection_;
  const EventTable* table_;
  std::string schema_;  // as it is written in SQL
};

}  // namespace baton::outbox
