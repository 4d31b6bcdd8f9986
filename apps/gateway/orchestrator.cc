#include "apps/gateway/orchestrator.h"

#include <charconv>

#include "apps/gateway/json.h"
#include "apps/gateway/log.h"
#include "apps/gateway/signal.h"

namespace baton::gateway {
namespace {

constexpr std::size_t kAtOnce = 256;
constexpr Millis kPauseAfterTrouble{1000};
constexpr Millis kCleanEvery{60'000};
constexpr const char* kRequeues = "ro_requeues_total";
constexpr const char* kRequeuesHelp = "Requests put off, by reason.";

using Clock = std::chrono::steady_clock;
using Verdict = Orchestrator::Verdict;

Verdict trouble(std::string_view what, const Error& error) {
  log().error(what, {{"error", error.message}});
  return Verdict::failed;
}

http::Response no_objects(const Error& error) {
  return unavailable("the store of the executions does not answer", error);
}

}  // namespace

Orchestrator::Orchestrator(LockClient locks, std::shared_ptr<ObjectStore> objects,
                           observe::Metrics& metrics, OrchestratorOptions options)
    : locks_(std::move(locks)),
      objects_(std::move(objects)),
      options_(std::move(options)),
      lock_metrics_(metrics, "ro"),
      started_(metrics.counter("ro_executions_started_total", "Workflow executions made.")),
      finished_(metrics.counter("ro_executions_finished_total", "Workflow executions ended.")),
      lock_busy_(metrics.counter(kRequeues, kRequeuesHelp, {{"reason", "lock_busy"}})),
      target_busy_(metrics.counter(kRequeues, kRequeuesHelp, {{"reason", "target_busy"}})) {}

void Orchestrator::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Millis pause = pass() ? options_.requeue : kPauseAfterTrouble;
    std::unique_lock lock(mutex_);
    signal_.wait_for(lock, stop, pause, [this] { return poked_; });
    poked_ = false;
  }
}

bool Orchestrator::pass() {
  if (auto concluded = objects_->conclude_requests(options_.now()); !concluded) {
    trouble("cannot end requests", concluded.error());
    return false;
  }
  auto requests = objects_->startable_requests(kAtOnce);
  if (!requests) {
    trouble("cannot list requests", requests.error());
    return false;
  }
  bool well = true;
  for (const auto& request : *requests) well = reconcile(request) != Verdict::failed && well;
  clean_up();
  return well;
}

Verdict Orchestrator::reconcile(const RemediationRequest& request) {
  lock_metrics_.attempted();
  const auto asked = Clock::now();
  AcquireOptions how{.ttl = options_.ttl};
  how.metadata["remediationRequest"] = request.name;
  auto lease = locks_.try_acquire(target_lock(request.target), how);
  if (!lease) {
    lock_metrics_.failed(lease.error());
    if (lease.error().code != Code::busy) return trouble("cannot lock", lease.error());
    lock_busy_.add();
    return Verdict::lock_busy;
  }
  const auto since = Clock::now();
  lock_metrics_.acquired(since - asked);
  const Verdict verdict = decide(request, *lease);
  (void)lease->release();  // if that fails, it ends by its TTL
  lock_metrics_.released(Clock::now() - since);
  return verdict;
}

// What was listed without the lock may be old news.
Verdict Orchestrator::decide(const RemediationRequest& listed, const Lease& lease) {
  const Guard guard = guard_of(lease, locks_.owner());
  if (auto ok = objects_->overtake(guard); !ok) return trouble("cannot decide", ok.error());
  auto request = objects_->request(listed.name);
  if (!request) return trouble("cannot read a request", request.error());
  if (!*request || (*request)->phase != Phase::pending) return Verdict::concluded;
  auto active = objects_->active_execution(listed.target);
  if (!active) return trouble("cannot read executions", active.error());
  if (*active && (*active)->request != listed.name) {
    target_busy_.add();
    return Verdict::target_busy;
  }
  if (!lease.valid()) {
    return trouble("cannot start", {.code = Code::lost, .message = lease.why_lost()});
  }
  return start(**request, guard);
}

Verdict Orchestrator::start(const RemediationRequest& request, const Guard& guard) {
  const WorkflowExecution execution{.name = "we-" + request.name,
                                    .request = request.name,
                                    .target = request.target,
                                    .created = options_.now()};
  auto made = objects_->create(execution, guard);
  if (!made) return trouble("cannot make an execution", made.error());
  if (auto ok = objects_->set_running(request.name, execution.name, guard); !ok) {
    return trouble("cannot note an execution", ok.error());
  }
  if (!*made) return Verdict::adopted;
  started_.add();
  return Verdict::started;
}

void Orchestrator::clean_up() {
  const Time now = options_.now();
  if (now - cleaned_ < kCleanEvery) return;
  cleaned_ = now;
  if (auto ok = objects_->forget(now - options_.keep); !ok) trouble("cannot forget", ok.error());
}

void Orchestrator::add_routes(http::Router& router) {
  router.add("POST", "/executions/{name}/finish",
             [this](const http::Request& request) { return finish(request); });
}

http::Response Orchestrator::finish(const http::Request& request) {
  const auto phase = parse_ending(request.body);
  if (!phase) {
    return http::error_response(400, "bad_request",
                                R"(say how it ended: {"phase": "Completed"} or "Failed")");
  }
  const std::string name(request.parameter("name"));
  auto ended = objects_->finish_execution(name, *phase, options_.now());
  if (!ended) return no_objects(ended.error());
  if (*ended) finished_.add();
  auto execution = objects_->execution(name);
  if (!execution) return no_objects(execution.error());
  if (!*execution) return http::error_response(404, "not_found", "there is no such execution");
  if ((*execution)->phase != *phase) {
    return http::error_response(409, "ended", "it has ended otherwise before");
  }
  {
    const std::lock_guard lock(mutex_);
    poked_ = true;
  }
  signal_.notify_all();
  return {.body = to_json(**execution)};
}

}  // namespace baton::gateway
