#include "apps/warehouse/effects.h"

#include <array>

#include <libpq-fe.h>
#include <sqlite3.h>

#include "apps/common/make_tables.h"
#include "apps/warehouse/effects.sql.h"
#include "baton/inbox.h"

namespace baton::warehouse {
namespace {

constexpr const char* kAdd =
    "INSERT INTO warehouse_effect (event_id, event_type, type, source_id, counted_by)"
    " VALUES ($1, $2, $3, $4, $5)";
using Texts = std::array<const char*, 5>;

Handled add(PGconn* transaction, const Texts& values) {
  PGresult* const result = PQexecParams(transaction, kAdd, static_cast<int>(values.size()), nullptr,
                                        values.data(), nullptr, nullptr, 0);
  const bool added = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  return added ? done() : failed(PQerrorMessage(transaction));
}

Handled add(sqlite3* transaction, const Texts& values) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(transaction, kAdd, -1, &statement, nullptr);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sqlite3_bind_text(statement, static_cast<int>(i) + 1, values[i], -1, SQLITE_STATIC);
  }
  const bool added = sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_finalize(statement);
  return added ? done() : failed(sqlite3_errmsg(transaction));
}

}  // namespace

Result<void> install_effects(sql::Connection& database) {
  if (database.query("SELECT 1 FROM warehouse_effect LIMIT 0")) return {};
  const auto inbox = database.kind() == sql::Kind::postgres ? install_inbox(database.postgres())
                                                            : install_inbox(database.sqlite());
  if (!inbox) return inbox;
  return apps::make_tables(database, embedded::apps_warehouse::effects_sql);
}

Handled add_effect(Handling& handling, const std::string& counted_by) {
  const Event& event = handling.event();
  const Texts values{event.id.c_str(), event.type.c_str(), event.aggregate_type.c_str(),
                     event.aggregate.c_str(), counted_by.c_str()};
  return handling.postgres() != nullptr ? add(handling.postgres(), values)
                                        : add(handling.sqlite(), values);
}

}  // namespace baton::warehouse
