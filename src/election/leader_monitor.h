#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "baton/elector.h"
#include "election/term.h"

namespace baton::election {

inline constexpr Millis kLookTimeout{2'000};  // for who leads

// Stands beside a loop on a thread of its own, because the loop's thread is taken: by the
// wait for the lock, or by the work. Reports work that overruns, and who leads.
class LeaderMonitor {
 public:
  LeaderMonitor(LockClient locks, const ElectorOptions& options, Clock& clock);
  LeaderMonitor(const LeaderMonitor&) = delete;
  LeaderMonitor& operator=(const LeaderMonitor&) = delete;

  // Starts no thread if nobody wants to be told anything.
  void start(const LockName& lock);
  void stop();

  void began(std::shared_ptr<Term> term);
  void term_ended();     // its stop token has fired
  void work_returned();  // and now nothing is done in its name any more

 private:
  void loop(const std::stop_token& stop);
  Instant check(std::unique_lock<std::mutex>& lock);
  Instant watch_work(std::unique_lock<std::mutex>& lock);
  void look(std::unique_lock<std::mutex>& lock);
  void tell(std::unique_lock<std::mutex>& lock, const Leader& leader);

  LockClient locks_;
  LockName lock_name_;
  const ElectorOptions& options_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable signal_;
  bool changed_ = false;
  std::shared_ptr<Term> term_;
  bool announced_ = false;  // the term, to on_new_leader
  bool reported_ = false;   // its overrun
  Token last_seen_ = 0;
  bool failing_ = false;  // only the thread's own
  Instant look_at_{};
  std::jthread thread_;
};

}  // namespace baton::election
