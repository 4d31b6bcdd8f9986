#include "locks/lab.h"

#include <cstdio>

#include "baton/store_admin.h"
#include "locks/session.h"

namespace baton::bench {

using namespace std::chrono_literals;

test::PostgresServer& Lab::server() {
  if (server_) return *server_;
  say("starting a private PostgreSQL");
  // Durability is the server's default; so is the size of its cache, which the tests cut down.
  server_ = std::make_unique<test::PostgresServer>(
      test::PostgresOptions{.settings = {{"fsync", "on"},
                                         {"shared_buffers", "128MB"},
                                         {"shared_preload_libraries", "pg_stat_statements"}}});
  Session(admin_url()).ask("CREATE EXTENSION pg_stat_statements");
  return *server_;
}

std::string Lab::new_database(const std::string& name) {
  Session(admin_url()).ask("CREATE DATABASE " + name);
  std::string url = server().socket_url(name);
  const auto admin = open_admin(url, BootClock::now() + 30s);
  (void)admin.value()->migrate(BootClock::now() + 30s).value();
  return url;
}

LockClient open_or_throw(const std::string& url) { return open(url).value(); }

void say(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

}  // namespace baton::bench
