// Acquire and release on advisory locks, 64 callers, a session each: how many pairs a second.

#include <memory>
#include <string>

#include "baton/store_admin.h"
#include "harness/rates.h"
#include "locks/callers.h"
#include "locks/session.h"
#include "stores/rows.h"
#include "support/postgres_server.h"

namespace baton::bench {
namespace {

constexpr int kCallers = 64;
constexpr int kNames = 16;

// One session of a floor, and the keys that no other session uses.
struct FloorSession {
  Session session;
  std::vector<std::string> keys;
  std::size_t next = 0;

  FloorSession(const std::string& url, int caller) : session(url) {
    session.prepare("lock", "SELECT pg_advisory_lock($1)");
    session.prepare("unlock", "SELECT pg_advisory_unlock($1)");
    for (int i = 0; i < kNames; ++i) keys.push_back(std::to_string(caller * kNames + i));
  }
  const char* next_key() { return keys[next++ % keys.size()].c_str(); }
};

// The same with nothing but the server's locks: no token, and nothing that outlives a crash.
std::vector<Step> plain_locks(const std::string& url) {
  std::vector<Step> steps;
  for (int caller = 0; caller < kCallers; ++caller) {
    steps.emplace_back([floor = std::make_shared<FloorSession>(url, caller)] {
      const char* key = floor->next_key();
      floor->session.run("lock", {key});
      floor->session.run("unlock", {key});
    });
  }
  return steps;
}

// The same promise as ours: a token that survives a crash, and a row that tells after a crash,
// which frees all locks, who may still trust his.
std::vector<Step> durable_locks(const std::string& url) {
  Session(url).ask(R"(
    CREATE SEQUENCE floor_token;
    CREATE TABLE floor_term (
      key bigint PRIMARY KEY, token bigint NOT NULL, until timestamptz NOT NULL
    ) WITH (fillfactor = 80))");
  std::vector<Step> steps;
  for (int caller = 0; caller < kCallers; ++caller) {
    const auto floor = std::make_shared<FloorSession>(url, caller);
    floor->session.prepare("take", R"(
      INSERT INTO floor_term AS t
      VALUES ($1, nextval('floor_token'), clock_timestamp() + interval '30 s')
      ON CONFLICT (key) DO UPDATE SET token = excluded.token, until = excluded.until
      RETURNING token)");
    floor->session.prepare("leave", R"(
      UPDATE floor_term SET until = '-infinity' WHERE key = $1
      RETURNING set_config('synchronous_commit', 'off', true))");
    steps.emplace_back([floor] {
      const char* key = floor->next_key();
      for (const char* statement : {"lock", "take", "leave", "unlock"}) {
        floor->session.run(statement, {key});
      }
    });
  }
  return steps;
}

}  // namespace

std::vector<Figure> advisory_many_callers(const RowOptions& options) {
  const test::PostgresServer server({.settings = {{"max_connections", "200"}}});
  const std::string url = "postgres-advisory" + server.url().substr(server.url().find(':'));
  const Deadline deadline = BootClock::now() + std::chrono::seconds(30);
  open_admin(url, deadline).value()->migrate(deadline).value();
  const auto locks = open(url).value();
  const Load callbacks = callers_by_callback(locks, kCallers, kNames);
  const Load threads = by_threads(callers(locks, kCallers, kNames));
  const Load plain = by_threads(plain_locks(server.url()));
  const Load durable = by_threads(durable_locks(server.url()));
  const std::string row = "advisory-64";
  const std::string what = "advisory locks, 64 callers";
  return {compare_rates(options, row, what + ", against 64 sessions with a durable token", {},
                        callbacks, durable),
          compare_rates(options, row, what + " that block, against the same", {}, threads, durable),
          compare_rates(options, row, what + ", against 64 sessions that only lock and unlock", {},
                        callbacks, plain)};
}

}  // namespace baton::bench
