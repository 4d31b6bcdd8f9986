#include <baton/event_log.h>
#include <baton/processors.h>

#include <sqlite3.h>

int main() {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) return 1;
  const auto installed = baton::install_event_log(database);
  sqlite3_close(database);
  return installed && !baton::ProcessorAdmin::open("nothing:") ? 0 : 1;
}
