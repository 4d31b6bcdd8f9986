#include "baton/processor_metrics.h"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace baton::observe {
namespace {

double in_seconds(std::chrono::duration<double> time) { return time.count(); }

}  // namespace

class ProcessorMetrics::Impl {
 public:
  Impl(std::shared_ptr<Metrics> metrics, std::string database, std::chrono::milliseconds every)
      : metrics_(std::move(metrics)), database_(std::move(database)), every_(every) {
    if (!database_.empty()) {
      thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
    }
  }

  [[nodiscard]] Counter errors(const std::string& processor) const {
    return metrics_->counter("baton_processor_errors_total", "Errors of the processors run here.",
                             {{"processor", processor}});
  }

  void show(const ProcessorState& state) const {
    const auto set = [&](const std::string& name, const std::string& help, double value) {
      metrics_->gauge("baton_processor_" + name, help, {{"processor", state.name}}).set(value);
    };
    set("position", "Position of the last event that it has handled.",
        static_cast<double>(state.position));
    set("lag", "Events of the log that wait for it, up to 100000.", static_cast<double>(state.lag));
    set("oldest_age_seconds", "Age of the oldest event that waits for it.",
        in_seconds(state.oldest_age));
    set("paused", "1 while it is paused, by an event that fails or by an operator.",
        state.status == "PAUSED" ? 1 : 0);
    set("stalled_seconds", "How long it has waited for a transaction that has opened the log.",
        in_seconds(state.stalled_for));
    set("owner_silent_seconds", "Since its owner was last heard of; it says so every 5 s.",
        in_seconds(state.seen_ago));
    (void)errors(state.name);  // shown as 0
  }

 private:
  // While the database cannot be read, the gauges keep their values.
  void watch(const std::stop_token& stop) const {
    const Counter failures =
        metrics_->counter("baton_processor_read_failures_total",
                          "Times that the database of the log could not be read.");
    std::mutex mutex;
    std::condition_variable_any woken;
    std::unique_lock lock(mutex);
    std::unique_ptr<ProcessorAdmin> admin;
    while (!stop.stop_requested()) {
      if (admin == nullptr) {
        if (auto opened = ProcessorAdmin::open(database_)) admin = std::move(*opened);
      }
      const auto states =
          admin == nullptr ? Result<std::vector<ProcessorState>>(Error{}) : admin->list();
      if (states) {
        for (const ProcessorState& state : *states) show(state);
      } else {
        failures.add();
        admin.reset();  // its session may be over
      }
      woken.wait_for(lock, stop, every_, [] { return false; });
    }
  }

  const std::shared_ptr<Metrics> metrics_;
  const std::string database_;
  const std::chrono::milliseconds every_;
  std::jthread thread_;
};

ProcessorMetrics::ProcessorMetrics(std::shared_ptr<Metrics> metrics, std::string database,
                                   std::chrono::milliseconds every)
    : impl_(std::make_unique<Impl>(std::move(metrics), std::move(database), every)) {}

ProcessorMetrics::~ProcessorMetrics() = default;

void ProcessorMetrics::count_error(const std::string& processor) const {
  impl_->errors(processor).add();
}

void ProcessorMetrics::show(std::span<const ProcessorState> states) const {
  for (const ProcessorState& state : states) impl_->show(state);
}

}  // namespace baton::observe
