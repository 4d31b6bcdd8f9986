// A try to acquire a name that another client holds: it is refused, and told who holds the name.

#include <unistd.h>

#include <memory>
#include <stdexcept>

#include "harness/one_processor.h"
#include "harness/rates.h"
#include "locks/callers.h"
#include "locks/rows.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr int kNames = 16;

// The try of a lock table that keeps no more than an expiry, such as ShedLock's: an UPDATE that
// matches no row. It tells nobody who holds the lock.
Step guarded_update(const std::string& url) {
  const auto session = std::make_shared<Session>(url);
  session->ask(R"(
    CREATE TABLE IF NOT EXISTS floor_busy (
      name text PRIMARY KEY, lock_until timestamptz NOT NULL, locked_at timestamptz NOT NULL,
      locked_by text NOT NULL);
    INSERT INTO floor_busy
      SELECT 'DEFAULT:bench:0:' || i, now() + interval '1 day', now(), 'holder'
      FROM generate_series(0, 15) i ON CONFLICT DO NOTHING)");
  session->prepare("try", R"(
    UPDATE floor_busy SET lock_until = now() + interval '30 s', locked_at = now(), locked_by = $2
    WHERE name = $1 AND lock_until <= now() RETURNING true)");
  return [session, next = 0]() mutable {
    const std::string name = "DEFAULT:bench:0:" + std::to_string(next++ % kNames);
    if (!session->run("try", {name.c_str(), "caller"}).empty()) {
      throw std::runtime_error("the floor was granted a name that is held");
    }
  };
}

Step try_acquire(LockClient locks) {
  return [locks = std::move(locks), next = 0]() mutable {
    const auto lease = locks.try_acquire(bench_name(0, next++ % kNames));
    if (lease || lease.error().code != Code::busy) throw std::runtime_error("not busy");
  };
}

}  // namespace

std::vector<Figure> postgres_busy(Lab& lab) {
  const std::string url = lab.new_database("busy");
  LockClient holder = open_or_throw(url);
  std::vector<Lease> held;
  for (int i = 0; i < kNames; ++i) {
    held.push_back(holder.try_acquire(bench_name(0, i), {.ttl = std::chrono::hours(1)}).value());
  }
  const auto compare = [&](std::string what, std::optional<double> target) {
    Figure figure = compare_rates(lab.options(), "postgres-busy", std::move(what), target,
                                  by_threads({try_acquire(open_or_throw(url))}),
                                  by_threads({guarded_update(url)}));
    figure.unit = "tries/s";
    return figure;
  };
  std::vector<Figure> figures{
      compare("PostgreSQL, a try on a busy name, against an UPDATE that matches no row", {})};
  {
    const OneProcessor shared({getpid(), lab.server().pid()});
    figures.push_back(compare("PostgreSQL, the same on its server's processor", {}));
  }
  Session admin(lab.admin_url());
  const Step ours = try_acquire(open_or_throw(url));
  for (int i = 0; i < kNames; ++i) ours();  // opens the connection, prepares the statements
  constexpr int kTries = 1000;
  const auto statements = [&] {
    return admin.number(
        "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON "
        "d.oid = s.dbid WHERE d.datname = 'busy'");
  };
  const double before = statements();
  for (int i = 0; i < kTries; ++i) ours();
  const double each = (statements() - before) / kTries;
  figures.push_back({.row = "postgres-busy",
                     .what = "PostgreSQL, a try on a busy name: statements",
                     .unit = "",
                     .ours = each,
                     .score = each,
                     .bound = Bound::at_most,
                     .target = 1.01});  // a sweep may come in between
  return figures;
}

}  // namespace baton::bench
