#include <baton/fence.h>
#include <baton/sqlite_store.h>

#include <sqlite3.h>

int main() {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) return 1;
  const auto installed = baton::install_fence(database);
  const auto fenced =
      baton::fence_alone(database, std::vector<baton::FenceToken>{{"report", baton::Mode::X, 7}});
  sqlite3_close(database);
  const bool opened = bool(
      baton::open_sqlite_store("sqlite:?", baton::system_clock().now() + std::chrono::seconds(5)));
  return installed && fenced && !opened ? 0 : 1;
}
