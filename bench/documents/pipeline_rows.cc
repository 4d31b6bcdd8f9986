// How many documents a second go all the way, against what the slowest stage does alone.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "documents/http_load.h"
#include "documents/rows.h"
#include "documents/stages.h"
#include "harness/machine.h"
#include "harness/statistics.h"

namespace baton::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Costs = std::map<std::string, double>;

constexpr int kConnections = 64;
constexpr std::int64_t kInFlight = 1'000;  // documents: enough for every stage
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kWarmUp{4};
constexpr std::chrono::minutes kPatience{5};

double load_of_machine() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

// Microseconds of processor time a document.
Costs difference(const Costs& before, const Costs& after, double documents) {
  Costs costs;
  for (const auto& [name, seconds] : after) {
    const auto found = before.find(name);
    if (found != before.end()) costs[name] = (seconds - found->second) / documents * 1e6;
  }
  return costs;
}

std::vector<std::pair<std::string, double>> details(const Costs& costs) {
  std::vector<std::pair<std::string, double>> all;
  for (const auto& [name, each] : costs) all.emplace_back(name + " us/document", each);
  all.emplace_back("load of the machine", load_of_machine());
  return all;
}

double sum(const Costs& costs) {
  double all = 0;
  for (const auto& [name, each] : costs) all += each;
  return all;
}

// The rate of a stage between a tenth of the documents, when it is at work, and all of them.
struct Alone {
  double per_second = 0;
  Costs costs;
};

class Meter {
 public:
  Meter(Platform& platform, const Stage& stage, std::int64_t documents)
      : platform_(platform), stage_(stage), documents_(documents) {}

  // True: it is over.
  bool look() {
    const std::int64_t done = stage_.documents(platform_);
    if (!begun_ && done >= documents_ / 10) {
      begun_ = Clock::now();
      first_ = done;
      before_ = platform_.cpu_seconds();
    }
    if (done < documents_) return false;
    const auto count = static_cast<double>(done - first_);
    alone_.per_second = count / Seconds(Clock::now() - begun_.value()).count();
    alone_.costs = difference(before_, platform_.cpu_seconds(), count);
    return true;
  }
  void wait() {
    const auto until = Clock::now() + kPatience;
    while (!look()) {
      if (Clock::now() > until) throw std::runtime_error(stage_.name + " does not come to an end");
      std::this_thread::sleep_for(kLook);
    }
  }
  [[nodiscard]] const Alone& alone() const { return alone_; }

 private:
  Platform& platform_;
  const Stage& stage_;
  const std::int64_t documents_;
  std::optional<Clock::time_point> begun_;
  std::int64_t first_ = 0;
  Costs before_;
  Alone alone_;
};

// Every service with no other one running, on the events that those before it have left in its
// queue.
Alone measure(Platform& platform, const Stage& stage, std::int64_t documents) {
  platform.start(stage.service);
  Meter meter(platform, stage, documents);
  if (&stage == &stages().front()) {
    HttpLoad load(platform.port(stage.service), kConnections);
    std::int64_t submitted = 0;
    const auto next = [&]() -> std::optional<std::string> {
      if (submitted == documents) return std::nullopt;
      ++submitted;
      return a_document();
    };
    bool over = false;
    while (submitted < documents) {
      load.run(kLook, next);
      over = meter.look();
    }
    if (!over) meter.wait();
  } else {
    meter.wait();
  }
  platform.stop(stage.service);
  return meter.alone();
}

// How many of the documents that were submitted, and answered, are done everywhere. Cheaper than
// the progress of the stages, and therefore for a look that is repeated.
std::int64_t finished(Platform& platform, std::int64_t submitted) {
  const std::int64_t open = platform.number(
      "ingestion", "SELECT count(*) FROM documents WHERE status IN ('UPLOADED', 'VALIDATED')");
  const std::int64_t sealed =
      platform.number("audit", "SELECT coalesce(max(sequence), 0) / 3 FROM audit_seal");
  const std::int64_t told =
      platform.number("notification", "SELECT coalesce(max(id), 0) / 2 FROM notification_history");
  return std::min({submitted - open, sealed, told});
}

void wait_until_finished(Platform& platform, std::int64_t documents) {
  const auto until = Clock::now() + kPatience;
  while (finished(platform, documents) < documents) {
    if (Clock::now() > until) throw std::runtime_error("documents do not come to an end");
    std::this_thread::sleep_for(kLook);
  }
}

// As many documents as keep all stages busy, submitted whenever others are finished.
struct Sustained {
  double per_second = 0;
  double client = 0;  // us/document
  Costs costs;
};
Sustained sustain(Platform& platform, std::int64_t& submitted, int seconds) {
  HttpLoad load(platform.port("ingestion"), kConnections);
  std::int64_t done = finished(platform, submitted);
  const auto next = [&]() -> std::optional<std::string> {
    if (submitted - done >= kInFlight) return std::nullopt;
    ++submitted;
    return a_document();
  };
  const auto run_for = [&](std::chrono::milliseconds time) {
    for (const auto until = Clock::now() + time; Clock::now() < until;) {
      load.run(kLook, next);
      done = finished(platform, submitted);
    }
  };
  run_for(kWarmUp);
  const std::int64_t first = done;
  const auto begun = Clock::now();
  const Costs before = platform.cpu_seconds();
  const double client = process_cpu_seconds();
  run_for(std::chrono::seconds(seconds));
  const auto count = static_cast<double>(done - first);
  return {.per_second = count / Seconds(Clock::now() - begun).count(),
          .client = (process_cpu_seconds() - client) / count * 1e6,
          .costs = difference(before, platform.cpu_seconds(), count)};
}

// Milliseconds from before a document is sent until others can see that it was enriched, in the
// audit log; and until that row is sealed.
struct Latencies {
  std::vector<double> recorded;
  std::vector<double> sealed;
};

class Observer {
 public:
  explicit Observer(Platform& platform) : session_(platform.database("audit")) {
    session_.prepare("recorded",
                     "SELECT coalesce(string_agg(id || ' ' || document_id, E'\\n' ORDER BY id), '')"
                     " FROM audit_log WHERE id > $1::bigint AND event_type = 'DocumentEnriched'");
    session_.prepare("sealed",
                     "SELECT coalesce(string_agg(s.sequence || ' ' || a.document_id, E'\\n'"
                     " ORDER BY s.sequence), '') FROM audit_seal s JOIN audit_log a"
                     " ON a.id = s.audit_id WHERE s.sequence > $1::bigint"
                     " AND a.event_type = 'DocumentEnriched'");
    recorded_ = session_.ask("SELECT coalesce(max(id), 0) FROM audit_log");
    sealed_ = session_.ask("SELECT coalesce(max(sequence), 0) FROM audit_seal");
  }

  void sent(const std::string& id, Clock::time_point when) {
    const std::lock_guard lock(mutex_);
    sent_[id] = when;
  }
  // Documents that were seen in the log, and sealed.
  void look() {
    look("recorded", recorded_, seen_recorded_);
    look("sealed", sealed_, seen_sealed_);
  }
  [[nodiscard]] Latencies latencies() {
    const std::lock_guard lock(mutex_);
    return {.recorded = of(seen_recorded_), .sealed = of(seen_sealed_)};
  }

 private:
  using Seen = std::unordered_map<std::string, Clock::time_point>;

  void look(const char* statement, std::string& last, Seen& seen) {
    std::istringstream lines(session_.run(statement, {last.c_str()}));
    const auto now = Clock::now();
    for (std::string number, id; lines >> number >> id;) {
      last = number;
      seen.emplace(id, now);
    }
  }
  [[nodiscard]] std::vector<double> of(const Seen& seen) const {
    std::vector<double> times;
    for (const auto& [id, when] : seen) {
      const auto found = sent_.find(id);
      if (found == sent_.end()) continue;
      times.push_back(std::chrono::duration<double, std::milli>(when - found->second).count());
    }
    return times;
  }

  Session session_;
  std::string recorded_, sealed_;
  Seen seen_recorded_, seen_sealed_;
  std::mutex mutex_;
  Seen sent_;
};

Latencies latency(Platform& platform, std::int64_t& submitted, double rate, int seconds) {
  Observer observer(platform);
  std::atomic<bool> over{false};
  std::jthread looking([&] {
    while (!over) {
      observer.look();
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
  });
  HttpLoad load(platform.port("ingestion"), kConnections);
  const auto start = Clock::now();
  std::int64_t begun = 0;
  const auto next = [&]() -> std::optional<std::string> {
    if (static_cast<double>(begun) > rate * Seconds(Clock::now() - start).count()) {
      return std::nullopt;
    }
    ++begun;
    return a_document();
  };
  load.run(std::chrono::seconds(seconds), next,
           [&](const std::string& body, Clock::time_point when) {
             const auto at = body.find(R"("id":")") + 6;
             observer.sent(body.substr(at, 36), when);
           });
  submitted += begun;
  wait_until_finished(platform, submitted);
  std::this_thread::sleep_for(kLook);
  over = true;
  looking.join();
  return observer.latencies();
}

Figure a_figure(std::string what, std::string unit, double ours) {
  return {.row = "pipeline",
          .what = std::move(what),
          .unit = std::move(unit),
          .ours = ours,
          .score = ours};
}

void add_latency(std::vector<Figure>& figures, const std::string& what,
                 const std::vector<double>& times) {
  figures.push_back(a_figure(what + ", p50", "ms", percentile(times, 0.5)));
  figures.push_back(a_figure(what + ", p99", "ms", percentile(times, 0.99)));
  figures.back().details = {{"documents", static_cast<double>(times.size())},
                            {"load of the machine", load_of_machine()}};
}

}  // namespace

std::vector<Figure> pipeline(Lab& lab, const Amounts& amounts) {
  Platform platform(lab, "pipeline");
  std::vector<Figure> figures;
  double slowest = 0;
  Costs alone;
  for (const Stage& stage : stages()) {
    const Alone measured = measure(platform, stage, amounts.documents);
    say("the stage " + stage.name + " alone: " + std::to_string(std::lround(measured.per_second)) +
        " documents/s");
    if (slowest == 0 || measured.per_second < slowest) slowest = measured.per_second;
    alone[stage.name] = sum(measured.costs);
    figures.push_back(
        a_figure("the stage " + stage.name + " alone", "documents/s", measured.per_second));
    figures.back().details = details(measured.costs);
  }

  platform.start_all();
  say("all stages");
  std::int64_t submitted = amounts.documents;
  const Sustained all = sustain(platform, submitted, amounts.seconds);
  figures.push_back({.row = "pipeline",
                     .what = "all stages at once, against the slowest one alone",
                     .unit = "documents/s",
                     .ours = all.per_second,
                     .floor = slowest,
                     .score = all.per_second / slowest,
                     .bound = Bound::at_least,
                     .target = 0.7,
                     .details = details(all.costs)});
  Figure processor{.row = "pipeline",
                   .what = "processor time of services and servers, against the stages alone",
                   .unit = "us/document",
                   .ours = sum(all.costs),
                   .floor = sum(alone),
                   .details = {{"client us/document", all.client}}};
  processor.score = processor.ours / *processor.floor;
  figures.push_back(std::move(processor));

  wait_until_finished(platform, submitted);
  say("half of that rate");
  const Latencies times = latency(platform, submitted, all.per_second / 2, amounts.seconds);
  add_latency(figures, "from POST to enriched and recorded, at half that rate", times.recorded);
  add_latency(figures, "from POST to enriched and sealed, at half that rate", times.sealed);
  for (const std::string& service : Platform::services()) {
    figures.push_back(a_figure("most resident memory of " + service, "MB",
                               most_resident_megabytes(platform.pid(service))));
  }
  return figures;
}

}  // namespace baton::bench
