#include <baton/postgres_advisory_store.h>

int main() {
  return baton::open_postgres_advisory_store("postgres-advisory://[",
                                             baton::system_clock().now() + std::chrono::seconds(5))
             ? 1
             : 0;
}
