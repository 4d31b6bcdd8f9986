#include "apps/warehouse/node.h"

#include "apps/warehouse/publishing.h"
#include "apps/warehouse/type_poller.h"
#include "apps/warehouse/watcher.h"
#include "baton/job_metrics.h"
#include "baton/lock_metrics.h"
#include "baton/metrics_server.h"

namespace baton::warehouse {
namespace {

constexpr Millis kDefaultDelay{30'000};
constexpr Millis kBackoff{5'000};
constexpr Millis kMostBackoff{300'000};
constexpr Millis kIdleInTransaction{5'000};

// One for the poll, and one for a poll that has lost its lock and has not noticed yet.
constexpr std::size_t kConnectionsPerType = 2;

// A job as it is about to be added.
struct Planned {
  const ObserverType* type;
  Schedule schedule;
  JobOptions options;
};

Result<std::vector<Planned>> plan(const Config& config) {
  std::vector<Planned> jobs;
  for (const auto& [name, observers] : config.observers) {
    const ObserverType* type = observer_type(name).value();
    auto job = config.jobs.configure(
        type->job(), {.backoff = kBackoff, .backoff_most = kMostBackoff, .group = "observer"});
    if (!job) return job.error();
    auto schedule =
        job->schedule ? Result<Schedule>(*job->schedule) : Schedule::fixed_delay(kDefaultDelay);
    if (!schedule) return schedule.error();
    jobs.push_back({.type = type, .schedule = *schedule, .options = job->options});
  }
  return jobs;
}

std::vector<Watcher::Type> watched(const std::vector<Planned>& jobs) {
  std::vector<Watcher::Type> types;
  for (const Planned& job : jobs) types.push_back({job.type->name, job.options.lock_ttl});
  return types;
}

std::vector<std::string> names_of(const std::vector<Planned>& jobs) {
  std::vector<std::string> names;
  for (const Planned& job : jobs) names.push_back(job.type->job());
  return names;
}

Result<void> prepare(sql::Pool& data, const Config& config) {
  auto database = data.take();
  if (!database) return database.error();
  ObserverStore store(**database);
  if (auto ok = store.install(); !ok) return ok;
  for (const auto& [type, names] : config.observers) {
    for (const std::string& name : names) {
      if (auto ok = store.add_observer(type, name, config.source.cursor); !ok) return ok;
    }
  }
  return {};
}

}  // namespace

// Destroyed from the end: the scheduler before what its handlers use.
class ObserverNode::Impl {
 public:
  Impl(std::shared_ptr<observe::Metrics> metrics, LockClient locks, std::shared_ptr<Broker> broker,
       const std::vector<Planned>& jobs, const Config& config, const NodeSettings& settings)
      : metrics_(std::move(metrics)),
        log_({.service = "warehouse",
              .node = settings.node.empty() ? locks.owner() : settings.node,
              .format = settings.log_format,
              .level = settings.log_level}),
        watcher_(metrics_, log_.named("warehouse.observer"),
                 settings.node.empty() ? locks.owner() : settings.node, watched(jobs)),
        job_metrics_(metrics_, {.jobs = names_of(jobs)}),
        data_(std::make_shared<sql::Pool>(
            settings.data,
            sql::Options{.name = "data",
                         .application = "warehouse",
                         .statement_timeout = config.statement_timeout,
                         .idle_in_transaction_timeout = kIdleInTransaction},
            kConnectionsPerType * jobs.size())),
        publishing_(locks, std::move(broker),
                    {.data = settings.data,
                     .ttl = settings.node_ttl,
                     .statement_timeout = config.statement_timeout},
                    metrics_, log_.named("warehouse.relay")),
        scheduler_(
            std::move(locks),
            {.own_node = {.id = settings.node, .role = "warehouse", .ttl = settings.node_ttl},
             .stop_within = settings.grace,
             .listeners = {&watcher_, &job_metrics_}}) {}

  Result<void> start(const std::vector<Planned>& jobs, const Config& config,
                     const NodeSettings& settings) {
    if (auto ok = prepare(*data_, config); !ok) return ok;
    if (!settings.metrics.empty()) {
      auto server = observe::MetricsServer::start(settings.metrics, metrics_);
      if (!server) return server.error();
      server_ = std::move(*server);
    }
    for (const Planned& job : jobs) {
      const auto poller =
          std::make_shared<TypePoller>(*job.type, config, data_, settings.poll_takes);
      const auto poll = [this, poller, name = job.type->name](Run& run) {
        PollFigures figures;
        try {
          poller->poll(run, figures);
        } catch (...) {
          watcher_.polled(name, figures);
          throw;
        }
        watcher_.polled(name, figures);
      };
      if (auto ok = scheduler_.add(job.type->job(), job.schedule, job.options, poll); !ok)
        return ok;
    }
    if (auto ok = publishing_.start(); !ok) return ok;
    if (auto ok = scheduler_.start(); !ok) return ok;
    const std::string where = server_ ? ", metrics on " + server_->url() + "/metrics" : "";
    log_.named("warehouse").info("observing " + std::to_string(jobs.size()) + " types" + where);
    if (server_ && !server_->warning().empty()) log_.named("warehouse").warn(server_->warning());
    return {};
  }

  // Whether nobody uses this any more.
  bool stop() {
    scheduler_.stop();
    publishing_.stop();
    log_.named("warehouse").info("stopped");
    return scheduler_.running() == 0;
  }

 private:
  std::shared_ptr<observe::Metrics> metrics_;
  observe::Log log_;
  Watcher watcher_;
  observe::JobMetrics job_metrics_;
  std::shared_ptr<sql::Pool> data_;
  std::unique_ptr<observe::MetricsServer> server_;
  Publishing publishing_;
  Scheduler scheduler_;
};

ObserverNode::ObserverNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// A poll that does not end keeps what it uses, until the process ends.
ObserverNode::~ObserverNode() {
  if (!impl_->stop()) (void)impl_.release();
}

Result<std::unique_ptr<ObserverNode>> ObserverNode::start(const Config& config,
                                                          const NodeSettings& settings) {
  auto jobs = plan(config);
  if (!jobs) return jobs.error();
  auto broker = Broker::open(settings.broker);
  if (!broker) return broker.error();
  auto metrics = std::make_shared<observe::Metrics>();
  auto locks = open(settings.store, {.owner = settings.node,
                                     .observer = std::make_shared<observe::LockMetrics>(metrics)});
  if (!locks) return locks.error();
  auto impl = std::make_unique<Impl>(metrics, *locks, std::move(*broker), *jobs, config, settings);
  if (auto ok = impl->start(*jobs, config, settings); !ok) return ok.error();
  return std::unique_ptr<ObserverNode>(new ObserverNode(std::move(impl)));
}

}  // namespace baton::warehouse
