#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

#include "apps/gateway/lock_metrics.h"
#include "apps/gateway/objects.h"
#include "baton/locks.h"
#include "http/router.h"

namespace baton::gateway {

struct OrchestratorOptions {
  Millis ttl{30'000};
  Millis requeue{100};                // a busy target is looked at again after this
  Millis keep{std::chrono::days(7)};  // what has ended is forgotten after this
  std::function<Time()> now = [] {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  };
};

// Starts one workflow execution for each remediation request, never two at a time for one target,
// however many orchestrators there are. Who runs the workflow says when it has ended.
//
// The name of an execution follows from that of its request. So an orchestrator that dies between
// making the execution and noting it in the request leaves nothing to clean up: the next one finds
// the name taken and goes on from there.
class Orchestrator {
 public:
  Orchestrator(LockClient locks, std::shared_ptr<ObjectStore> objects, observe::Metrics& metrics,
               OrchestratorOptions options = {});

  void add_routes(http::Router& router);

  // Until `stop`: all that can be started is, again after each pause.
  void run(const std::stop_token& stop);

  enum class Verdict {
    started,
    adopted,      // it had been started before
    concluded,    // nothing is to be done any more
    lock_busy,    // another orchestrator decides about this target right now
    target_busy,  // something runs for this target
    failed,
  };
  Verdict reconcile(const RemediationRequest& request);

  // One look at everything; false if the stores did not answer.
  bool pass();

 private:
  Verdict decide(const RemediationRequest& listed, const Lease& lease);
  Verdict start(const RemediationRequest& request, const Guard& guard);
  void clean_up();
  http::Response finish(const http::Request& request);

  LockClient locks_;
  const std::shared_ptr<ObjectStore> objects_;
  const OrchestratorOptions options_;
  const LockMetrics lock_metrics_;
  observe::Counter started_;
  observe::Counter finished_;
  observe::Counter lock_busy_;
  observe::Counter target_busy_;
  Time cleaned_{};

  std::mutex mutex_;
  std::condition_variable_any signal_;
  bool poked_ = false;
};

}  // namespace baton::gateway
