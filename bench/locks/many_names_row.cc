// Whether a lock costs more among a million others.

#include <random>

#include "harness/slices.h"
#include "harness/statistics.h"
#include "locks/callers.h"
#include "locks/rows.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

// Fills the table by SQL, with free names as releases leave them.
LockClient client_among(Lab& lab, const std::string& database, int names) {
  const std::string url = lab.new_database(database);
  const std::string key = key_of(bench_name(0, 0));
  Session session(url);
  session.ask("INSERT INTO baton.lock (key, token, place, predicate, owner, channel) SELECT '" +
              key.substr(0, key.size() - 1) + "' || i, 1, 1, 'holding', 'host:12345', '" +
              to_string(new_grant_id()) + "' FROM generate_series(0, " + std::to_string(names - 1) +
              ") i");
  session.ask("VACUUM ANALYZE baton.lock");
  session.ask("CHECKPOINT");
  return open_or_throw(url);
}

// The median time of one acquire, in ms, of names drawn at random.
class Acquires {
 public:
  Acquires(LockClient locks, int names) : locks_(std::move(locks)), name_(0, names - 1) {}

  double measure(std::chrono::milliseconds time) {
    std::vector<double> samples;
    const Instant end = BootClock::now() + time;
    while (BootClock::now() < end) {
      const LockName name = bench_name(0, name_(random_));
      const Instant start = BootClock::now();
      auto lease = locks_.acquire(name).value();
      samples.push_back(
          std::chrono::duration<double, std::milli>(BootClock::now() - start).count());
      lease.release().value();
    }
    return percentile(std::move(samples), 0.5);
  }

 private:
  LockClient locks_;
  std::uniform_int_distribution<int> name_;
  std::minstd_rand random_{42};
};

}  // namespace

std::vector<Figure> many_names(Lab& lab) {
  constexpr int kFew = 1000;
  constexpr int kMany = 1'000'000;
  say("  filling a table with a million names");
  Acquires many(client_among(lab, "many_names", kMany), kMany);
  Acquires few(client_among(lab, "few_names", kFew), kFew);
  const Pairs pairs = take_turns(
      lab.options().slices, [&] { return many.measure(lab.options().slice); },
      [&] { return few.measure(lab.options().slice); });
  return {{.row = "many-names",
           .what = "acquire among 1,000,000 names, median, against 1,000",
           .unit = "ms",
           .ours = median(pairs.ours),
           .floor = median(pairs.floor),
           .score = median(ratios(pairs.ours, pairs.floor)),
           .bound = Bound::at_most,
           .target = 1.5}};
}

}  // namespace baton::bench
