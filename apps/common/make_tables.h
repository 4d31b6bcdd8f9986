#pragma once

#include <string>
#include <string_view>

#include "sql/connection.h"
#include "sql/transaction.h"

namespace baton::apps {

// CREATE … IF NOT EXISTS, one process at a time: PostgreSQL refuses two at once.
[[nodiscard]] inline Result<void> make_tables(sql::Connection& database, std::string_view schema) {
  return database.transaction([&](sql::Transaction& transaction) -> Result<void> {
    if (database.kind() == sql::Kind::postgres) {
      auto locked = transaction.script("SELECT pg_advisory_xact_lock(5144309018870215112)");
      if (!locked) return locked;
    }
    return transaction.script(std::string(schema));
  });
}

}  // namespace baton::apps
