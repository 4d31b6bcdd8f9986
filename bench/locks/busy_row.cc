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

constexpr const char* kTable = R"(
  CREATE TABLE shedlock (
    name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL,
    locked_by varchar(255) NOT NULL);
  INSERT INTO shedlock
    SELECT 'DEFAULT:bench:0:' || i, timezone('utc', now()) + interval '1 day',
           timezone('utc', now()), 'holder'
    FROM generate_series(0, 15) i)";

// Both are ShedLock's own, of its JDBC provider with the server's time, but for RETURNING.
constexpr const char* kTry = R"(
  UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + cast($1 AS interval),
    locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $2
  WHERE shedlock.name = $3 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)
  RETURNING true)";

std::shared_ptr<Session> floor_session(const std::string& url) {
  auto session = std::make_shared<Session>(url);
  session->prepare("begin", "BEGIN");
  session->prepare("try", kTry);
  session->prepare("commit", "COMMIT");
  return session;
}

class FloorNames {
 public:
  std::vector<const char*> next() {
    name_ = "DEFAULT:bench:0:" + std::to_string(next_++ % kNames);
    return {"30000 milliseconds", "caller", name_.c_str()};
  }

 private:
  std::string name_;
  int next_ = 0;
};

void expect_refused(const std::string& granted) {
  if (!granted.empty()) throw std::runtime_error("the floor was granted a name that is held");
}

// What ShedLock sends when a lock is held: BEGIN and an UPDATE that matches no row in one round
// trip, as the JDBC driver does, then COMMIT.
Step shedlock_try(const std::string& url) {
  return [session = floor_session(url), names = FloorNames()]() mutable {
    expect_refused(session->run_both("begin", "try", names.next()));
    session->run("commit", {});
  };
}

// The UPDATE alone, in a transaction of its own.
Step guarded_update(const std::string& url) {
  return [session = floor_session(url), names = FloorNames()]() mutable {
    expect_refused(session->run("try", names.next()));
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
  Session(url).ask(kTable);
  const auto compare = [&](std::string what, std::optional<double> target, const Step& floor) {
    Figure figure =
        compare_rates(lab.options(), "postgres-busy", std::move(what), target,
                      by_threads({try_acquire(open_or_throw(url))}), by_threads({floor}));
    figure.unit = "tries/s";
    return figure;
  };
  std::vector<Figure> figures{compare(
      "PostgreSQL, a try on a busy name, against ShedLock's statements", 1.0, shedlock_try(url))};
  {
    const OneProcessor shared({getpid(), lab.server().pid()});
    figures.push_back(
        compare("PostgreSQL, the same on its server's processor", 1.0, shedlock_try(url)));
  }
  figures.push_back(
      compare("PostgreSQL, the same against the UPDATE alone", {}, guarded_update(url)));
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
