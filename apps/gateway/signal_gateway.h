#pragma once

#include <functional>
#include <memory>

#include "apps/gateway/lock_metrics.h"
#include "apps/gateway/objects.h"
#include "apps/gateway/signal.h"
#include "baton/locks.h"
#include "http/router.h"
#include "http/worker_pool.h"

namespace baton::gateway {

struct GatewayOptions {
  Millis ttl{30'000};   // how long a fingerprint stays locked after its gateway has died
  Millis wait{10'000};  // for the lock; then 503
  std::function<Time()> now = [] {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  };
};

// Turns signals into remediation requests, one for all signals of a fingerprint while it is active,
// however many gateways there are.
//
//   signal ──► is one active? ──yes──────────────────────────────► 202, counted
//                  │ no
//                  └─► wait for the lock of the fingerprint (no thread waits)
//                         └─► show the lock's token to the fence
//                                └─► is one active now? ──yes────► 202, counted
//                                       │ no
//                                       └─► create it, fenced ───► 201
class SignalGateway : public std::enable_shared_from_this<SignalGateway> {
 public:
  SignalGateway(LockClient locks, std::shared_ptr<ObjectStore> objects,
                std::shared_ptr<http::WorkerPool> workers,
                std::shared_ptr<observe::Metrics> metrics, GatewayOptions options = {});

  void add_routes(http::Router& router);

  // Ends the waits for locks: they are answered 503 when it returns, and the threads of the lock
  // client have no reference to this any more. What has its lock goes on.
  void stop();

  // Answers a POST /signals. Call it on a worker.
  void handle(const http::Request& request, const http::Reply& reply);

  // Answers a POST /alertmanager, each of its alerts as a signal. Call it on a worker.
  void handle_notification(const http::Request& request, const http::Reply& reply);

 private:
  struct Waits;
  class Wait;
  class Notification;

  http::Response reject(const Error& error);
  void handle_signal(Signal signal, std::string correlation_id, const http::Reply& reply);

  // The answer if there is an active request; nothing if one has to be made.
  Result<std::optional<http::Response>> answer_duplicate(const Signal& signal);
  void lock_and_create(Signal signal, http::Reply reply);
  http::Response create_locked(const Signal& signal, const Lease& lease);
  http::Response create(const Signal& signal, const Guard& guard);
  http::Response no_lock(const Error& error);
  http::Response no_objects(const Error& error);

  LockClient locks_;
  const std::shared_ptr<ObjectStore> objects_;
  const std::shared_ptr<http::WorkerPool> workers_;
  const std::shared_ptr<observe::Metrics> metrics_;  // outlived by no wait
  const GatewayOptions options_;
  const LockMetrics lock_metrics_;
  observe::Counter created_;
  observe::Counter duplicates_;
  observe::Counter rejected_;
  observe::Counter unavailable_;
  std::stop_source stop_;
  const std::shared_ptr<Waits> waits_;
};

}  // namespace baton::gateway
