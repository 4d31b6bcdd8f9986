#include <baton/consumer.h>
#include <baton/inbox.h>

#include <sqlite3.h>

int main() {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) return 1;
  const auto installed = baton::install_inbox(database);
  sqlite3_close(database);
  return installed ? 0 : 1;
}
