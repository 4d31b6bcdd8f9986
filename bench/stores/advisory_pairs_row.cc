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

// The same with nothing but the server's locks: no token, and nothing that outlives a crash.
std::vector<Step> plain_locks(const std::string& url) {
  std::vector<Step> steps;
  for (int caller = 0; caller < kCallers; ++caller) {
    const auto session = std::make_shared<Session>(url);
    session->prepare("lock", "SELECT pg_advisory_lock($1)");
    session->prepare("unlock", "SELECT pg_advisory_unlock($1)");
    std::vector<std::string> keys;
    for (int i = 0; i < kNames; ++i) keys.push_back(std::to_string(caller * kNames + i));
    steps.emplace_back([session, keys, next = std::size_t{0}]() mutable {
      const char* key = keys[next++ % keys.size()].c_str();
      session->run("lock", {key});
      session->run("unlock", {key});
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
  const Load floor = by_threads(plain_locks(server.url()));
  const std::string against = ", against 64 sessions that only lock and unlock";
  return {compare_rates(options, "advisory-64", "advisory locks, 64 callers" + against, {},
                        callbacks, floor),
          compare_rates(options, "advisory-64", "advisory locks, 64 callers that block" + against,
                        {}, threads, floor)};
}

}  // namespace baton::bench
