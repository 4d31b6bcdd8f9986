#include <baton/fence.h>
#include <baton/postgres_store.h>

#include <libpq-fe.h>

int main() {
  PGconn* nowhere = PQconnectdb("host=/nonexistent");
  const auto fenced = baton::install_fence(nowhere);
  PQfinish(nowhere);
  const bool opened = bool(baton::open_postgres_store(
      "postgres://[", baton::system_clock().now() + std::chrono::seconds(5)));
  return !fenced && !opened ? 0 : 1;
}
