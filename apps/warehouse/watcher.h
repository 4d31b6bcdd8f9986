#pragma once

#include <map>
#include <memory>
#include <string>

#include "apps/warehouse/observer_metrics.h"
#include "apps/warehouse/observer_store.h"
#include "baton/scheduler.h"
#include "observe/log.h"

namespace baton::warehouse {

// Turns what the scheduler does into the metrics and log lines of the observers.
class Watcher final : public SchedulerListener {
 public:
  struct Type {
    std::string name;
    Millis lock_ttl{60'000};
  };
  Watcher(const std::shared_ptr<observe::Metrics>& metrics, observe::Logger log,
          const std::string& node, const std::vector<Type>& types);

  void on_acquired(const Fire& fire, std::chrono::nanoseconds asked, Millis late) override;
  void on_skipped(const Fire& fire, SkipReason reason) override;
  void on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds duration,
                   const std::string& detail) override;
  void on_cycle(const Cycle& cycle) override;
  void on_log(LogLevel level, const std::string& job, const std::string& message) override;

  void polled(const std::string& type, const PollFigures& figures);

 private:
  struct Counters {
    observe::Counter queries;
    observe::Counter rows;
    observe::Counter events;
    Millis lock_ttl;
  };
  ObserverMetrics observers_;
  observe::Logger log_;
  std::map<std::string, Counters, std::less<>> types_;
};

}  // namespace baton::warehouse
