#include "apps/warehouse/watcher.h"

#include <algorithm>

#include "apps/warehouse/observer_log.h"
#include "apps/warehouse/observer_type.h"

namespace baton::warehouse {
namespace {

std::vector<std::string> names_of(const std::vector<Watcher::Type>& types) {
  std::vector<std::string> names;
  std::transform(types.begin(), types.end(), std::back_inserter(names),
                 [](const Watcher::Type& type) { return type.name; });
  return names;
}

observe::LogLevel level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return observe::LogLevel::debug;
    case LogLevel::info: return observe::LogLevel::info;
    case LogLevel::warning: return observe::LogLevel::warn;
    case LogLevel::error: break;
  }
  return observe::LogLevel::error;
}

}  // namespace

Watcher::Watcher(const std::shared_ptr<observe::Metrics>& metrics, observe::Logger log,
                 const std::string& node, const std::vector<Type>& types)
    : observers_(metrics, {.node = node, .types = names_of(types)}), log_(std::move(log)) {
  for (const Type& type : types) {
    const observe::Labels labels{{"type", type.name}};
    types_.emplace(
        type.name,
        Counters{.queries = metrics->counter("warehouse_source_queries_total",
                                             "Queries to the source database.", labels),
                 .rows = metrics->counter("warehouse_source_rows_total",
                                          "Rows read from the source, again or not.", labels),
                 .events = metrics->counter("warehouse_events_published_total",
                                            "Events written to the outbox.", labels),
                 .lock_ttl = type.lock_ttl});
  }
}

void Watcher::on_acquired(const Fire& fire, std::chrono::nanoseconds /*asked*/, Millis /*late*/) {
  observers_.acquired(type_of_job(fire.job));
}

void Watcher::on_skipped(const Fire& fire, SkipReason reason) {
  const auto type = type_of_job(fire.job);
  if (reason == SkipReason::given_up) return observers_.given_up(type);
  observers_.failed(type);
}

void Watcher::on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds duration,
                          const std::string& detail) {
  const auto type = type_of_job(fire.job);
  const auto known = types_.find(type);
  const Millis ttl = known != types_.end() ? known->second.lock_ttl : Millis(60'000);
  if (result == FireResult::ok) {
    observers_.polled(type, duration, ttl);
    log_.debug(fire.job + ": " + detail);
  } else {
    observers_.poll_failed(type, duration, ttl);
  }
}

void Watcher::on_cycle(const Cycle& cycle) {
  observers_.cycle(cycle.duration, static_cast<int>(cycle.locked), static_cast<int>(cycle.skipped));
}

void Watcher::on_log(LogLevel level, const std::string& job, const std::string& message) {
  observe::LogFields fields;
  if (!job.empty()) fields.emplace_back("job", job);
  log_.log(level_of(level), observer_message(message), fields);
}

void Watcher::polled(const std::string& type, const PollFigures& figures) {
  const auto known = types_.find(type);
  if (known == types_.end()) return;
  known->second.queries.add(static_cast<double>(figures.queries));
  known->second.rows.add(static_cast<double>(figures.rows));
  known->second.events.add(static_cast<double>(figures.events));
}

}  // namespace baton::warehouse
