#include <baton/outbox.h>

#include <sqlite3.h>

int main() {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) return 1;
  const auto installed = baton::install_outbox(database);
  sqlite3_exec(database, "BEGIN", nullptr, nullptr, nullptr);
  const auto id = baton::Outbox({.exchange = "shop"})
                      .add(database, {.type = "OrderPlaced", .aggregate = "7", .payload = "{}"});
  sqlite3_close(database);
  return installed && id ? 0 : 1;
}
