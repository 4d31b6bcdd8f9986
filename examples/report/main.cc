// Writes the report of a month, such as 2026-11, on one of all the machines that are told to.

#include <baton/fence.h>
#include <baton/locks.h>
#include <libpq-fe.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace std::chrono_literals;

int fail(const std::string& why) {
  std::fprintf(stderr, "report: %s\n", why.c_str());
  return 1;
}

bool run(PGconn* database, const char* sql, std::vector<const char*> parameters = {}) {
  PGresult* result = PQexecParams(database, sql, static_cast<int>(parameters.size()), nullptr,
                                  parameters.data(), nullptr, nullptr, 0);
  const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  return done;
}

int main(int argc, char** argv) {
  const char* const url = std::getenv("BATON_STORE");
  if (argc != 2 || url == nullptr) return fail("usage: BATON_STORE=postgres://… report MONTH");
  const std::string month = argv[1];

  auto locks = baton::open(url);
  if (!locks) return fail(locks.error().message);

  // Renewed in the background; if this process dies, the lock is free after 30 s.
  auto lease =
      locks->acquire({.subject = "report", .resources = {month}}, {.ttl = 30s, .wait = 5s});
  if (!lease) return fail(lease.error().message);  // busy, timed_out, unavailable: a value

  for (int page = 0; page < 100; ++page) {
    // A std::stop_token that fires before anybody else can get the lock.
    if (lease->lost().stop_requested()) return fail("lost the lock: " + lease->why_lost());
    // … the long work …
  }

  const std::unique_ptr<PGconn, decltype(&PQfinish)> database(PQconnectdb(url), &PQfinish);
  if (!run(database.get(), "BEGIN")) return fail(PQerrorMessage(database.get()));
  // First in the transaction: refuses this process if a newer holder has written.
  if (auto fenced = baton::fence(database.get(), *lease); !fenced) {
    return fail(fenced.error().message);
  }
  if (!run(database.get(), "INSERT INTO report (month) VALUES ($1) ON CONFLICT DO NOTHING",
           {month.c_str()}) ||
      !run(database.get(), "COMMIT")) {
    return fail(PQerrorMessage(database.get()));
  }
  std::printf("the report of %s is written\n", month.c_str());
  return 0;
}  // the lock is released here
