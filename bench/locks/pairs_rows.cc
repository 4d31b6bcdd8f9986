// Acquire and release, again and again: how many pairs a second.

#include <unistd.h>

#include <algorithm>

#include "harness/one_processor.h"
#include "harness/rates.h"
#include "harness/slices.h"
#include "harness/statistics.h"
#include "locks/callers.h"
#include "locks/postgres_floor.h"
#include "locks/rows.h"
#include "locks/session.h"
#include "locks/sqlite_floor.h"

namespace baton::bench {
namespace {

constexpr int kNamesOfOne = 1000;
constexpr int kNamesOfMany = 16;

std::string processes(Session& admin, const std::string& which) {
  return admin.ask("SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE " + which);
}

Figure processor_time(Lab& lab, std::string what, const Load& ours, const Load& floor) {
  Session admin(lab.admin_url());
  const std::string database = "datname = 'many_callers' AND application_name ";
  return compare_processor_time(lab.options(), "postgres-64", std::move(what),
                                {ours, processes(admin, database + "= 'baton'")},
                                {floor, processes(admin, database + "<> 'baton'")});
}

}  // namespace

std::vector<Figure> postgres_one_caller(Lab& lab) {
  const std::string url = lab.new_database("one_caller");
  create_postgres_floor(url);
  const auto compare = [&](std::string what) {
    const Load ours = by_threads(callers(open_or_throw(url), 1, kNamesOfOne));
    const Load floor = by_threads(postgres_floor(url, 1, kNamesOfOne));
    return compare_rates(lab.options(), "postgres-1", std::move(what), 0.80, ours, floor);
  };
  std::vector<Figure> figures{compare("PostgreSQL, 1 caller, against 1 raw session")};
  const OneProcessor shared({getpid(), lab.server().pid()});
  figures.push_back(compare("PostgreSQL, 1 caller, on its server's processor, against the same"));
  return figures;
}

std::vector<Figure> postgres_many_callers(Lab& lab) {
  const std::string url = lab.new_database("many_callers");
  create_postgres_floor(url);
  const auto locks = open_or_throw(url);
  const Load callbacks = callers_by_callback(locks, 64, kNamesOfMany);
  const Load threads = by_threads(callers(locks, 64, kNamesOfMany));
  const Load floor = by_threads(postgres_floor(url, 16, kNamesOfMany));
  const std::string against = ", against 16 raw sessions";
  Figure rate = compare_rates(lab.options(), "postgres-64", "PostgreSQL, 64 callers" + against, 4,
                              callbacks, floor);
  Figure blocking =
      compare_rates(lab.options(), "postgres-64", "PostgreSQL, 64 callers that block" + against, {},
                    threads, floor);
  Figure connections{.row = "postgres-64",
                     .what = "PostgreSQL, 64 callers: connections",
                     .unit = "",
                     .bound = Bound::at_most,
                     .target = 4};
  // Connections stay once they are open, so what is there after the slices is the most there was.
  connections.ours = connections.score = Session(lab.admin_url())
                                             .number(
                                                 "SELECT count(*) FROM pg_stat_activity WHERE "
                                                 "application_name = 'baton' AND datname = "
                                                 "'many_callers'");
  return {std::move(rate), std::move(connections),
          processor_time(lab, "PostgreSQL, 64 callers: processor time, client and server",
                         callbacks, floor),
          std::move(blocking),
          processor_time(lab, "PostgreSQL, 64 callers that block: processor time", threads, floor)};
}

std::vector<Figure> sqlite_one_caller(Lab& lab) {
  const auto locks = open_or_throw("sqlite:" + (lab.directory() / "one.db").string());
  const Load floor =
      by_threads({sqlite_floor((lab.directory() / "one_floor.db").string(), kNamesOfOne)});
  return {compare_rates(lab.options(), "sqlite-1", "SQLite, 1 caller, against a raw loop", 0.7,
                        by_threads(callers(locks, 1, kNamesOfOne)), floor)};
}

std::vector<Figure> sqlite_many_callers(Lab& lab) {
  const auto locks = open_or_throw("sqlite:" + (lab.directory() / "many.db").string());
  const Load floor =
      by_threads({sqlite_floor((lab.directory() / "many_floor.db").string(), kNamesOfOne)});
  return {
      compare_rates(lab.options(), "sqlite-16", "SQLite, 16 callers, against a raw loop", 3,
                    callers_by_callback(locks, 16, kNamesOfMany), floor),
      compare_rates(lab.options(), "sqlite-16", "SQLite, 16 callers that block, against a raw loop",
                    {}, by_threads(callers(locks, 16, kNamesOfMany)), floor)};
}

// With two callers, part of the time goes into their waiting for each other: for information.
std::vector<Figure> memory_callers(Lab& lab) {
  std::vector<Figure> figures;
  for (const int count : {1, 2}) {
    const auto steps = callers(open_or_throw("memory:"), count, kNamesOfMany);
    (void)run_slice(steps, lab.options().slice / 4);
    std::vector<double> by_cpu;
    std::vector<double> by_wall;
    for (int i = 0; i < lab.options().slices; ++i) {
      const Slice slice = run_slice(steps, lab.options().slice);
      by_cpu.push_back(slice.per_cpu_second());
      by_wall.push_back(slice.per_second());
    }
    figures.push_back({.row = "memory",
                       .what = "memory, callers: " + std::to_string(count) + " (wall " +
                               std::to_string(static_cast<int>(median(by_wall) / 1000)) + "k/s)",
                       .unit = "pairs/CPU s",
                       .ours = median(by_cpu),
                       .score = median(by_cpu),
                       .bound = Bound::at_least,
                       .target = count == 1 ? std::optional(300'000.0) : std::nullopt,
                       .details = {{"per_wall_second", median(by_wall)}}});
  }
  return figures;
}

}  // namespace baton::bench
