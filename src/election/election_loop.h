#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>

#include "baton/elector.h"
#include "core/backoff.h"
#include "election/health_check.h"
#include "election/leader_monitor.h"
#include "election/ranking.h"
#include "election/term.h"

namespace baton::election {

// The implementation of Elector. Shared with the threads that run it, so that it stays valid if the
// work never returns and the Elector is destroyed.
class ElectionLoop : public std::enable_shared_from_this<ElectionLoop> {
 public:
  ElectionLoop(LockClient locks, std::string_view election, ElectorOptions options);

  Result<void> run(const Elector::Work& work, const std::stop_token& stop);

  // A run is about to begin on another thread: request_stop() has to wait for it.
  void expect_run();

  // Whether this election can be held at all, as far as can be said without asking.
  [[nodiscard]] Result<void> check() const;

  void request_stop();
  // False if it still runs after `limit`, or if we are called from inside it.
  bool wait_until_over(Instant limit);

  [[nodiscard]] bool is_leader() const;
  [[nodiscard]] Result<std::optional<Leader>> leader();
  bool resign();
  Result<void> transfer(const std::string& node);

  [[nodiscard]] bool inherited() const { return locks_.inherited(); }
  [[nodiscard]] Clock& clock() const { return clock_; }
  [[nodiscard]] const ElectorOptions& options() const { return options_; }
  void report(const Error& error) const;

 private:
  class Running;  // a run() under way

  Result<void> run_terms(const Elector::Work& work);
  void wait_until_fit();
  void health_changed();
  Result<Lease> acquire_lease();
  bool give_way(Lease& lease);
  [[nodiscard]] Millis pause_before_retry(const Error& error);
  void lead(Lease lease, const Elector::Work& work);
  void do_work(Term& term, Leadership& leadership, const Elector::Work& work);
  bool hand_over(Term& term);
  [[nodiscard]] std::optional<HolderInfo> revocation(const Term& term);
  [[nodiscard]] Millis pause_after(Ending ending, bool revoked);
  [[nodiscard]] Millis cooldown() const;
  void pause(Millis time);
  [[nodiscard]] bool stopping() const { return stop_.stop_requested(); }
  [[nodiscard]] std::shared_ptr<Term> term() const;

  LockClient locks_;
  const std::string election_;
  const ElectorOptions options_;
  Clock& clock_;
  const Result<LockName> lock_;
  LeaderMonitor monitor_;
  HealthCheck health_;
  Ranking ranking_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable signal_;
  std::shared_ptr<Term> term_;
  std::stop_source standing_;  // ends the wait for the lock
  std::thread::id runner_;     // none while nobody runs it
  bool expected_ = false;
  bool has_queue_ = true;
  core::Backoff after_failure_;
  core::Backoff after_refusal_;
  Millis next_pause_{0};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace baton::election
