#include "consumer_effect.h"

#include <memory>
#include <stdexcept>

#include <libpq-fe.h>
#include <sqlite3.h>

namespace baton::test {

void write_effect(const Handling& handling, const std::string& what) {
  const std::string sql =
      "INSERT INTO effects (event_id, what) VALUES ('" + handling.event().id + "', '" + what + "')";
  if (handling.postgres() != nullptr) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(handling.postgres(), sql.c_str()), &PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
      throw std::runtime_error(PQerrorMessage(handling.postgres()));
    }
    return;
  }
  if (sqlite3_exec(handling.sqlite(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(handling.sqlite()));
  }
}

}  // namespace baton::test
