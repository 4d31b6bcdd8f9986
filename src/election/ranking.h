#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "baton/elector.h"

namespace baton::election {

// Which candidate should lead, where electors have a priority.
//
// A queue in a store knows no priorities. So every elector that has one holds the lock
// leader-candidate/{election}/{id} while it runs, with its priority in the metadata; who waits in
// the queue is in the lock of the election itself. From the two follows who is best:
//
//   a term ends              its leader hands the lock to the best candidate that waits
//   a candidate is granted   it passes the lock on, before its work begins, if a better one waits:
//                            as after a crash, when the queue alone decided
//   `preempt`                the best candidate asks a leader of a lower priority to hand over
class Ranking {
 public:
  Ranking(LockClient locks, const ElectorOptions& options, Clock& clock);
  ~Ranking() { stop(); }
  Ranking(const Ranking&) = delete;
  Ranking& operator=(const Ranking&) = delete;

  [[nodiscard]] Result<void> check() const;

  void start(const LockName& election);
  void stop();

  // The metadata of this replica's lock while it leads.
  [[nodiscard]] Metadata metadata() const;

  // The candidate that waits and has the highest priority; of several, the first in the queue.
  // Nothing without a priority of our own, if the store does not answer, or if nobody waits.
  struct Best {
    std::string node;
    int priority = 0;
  };
  [[nodiscard]] std::optional<Best> best_waiting();

  // The best candidate, if its priority is above ours.
  [[nodiscard]] std::optional<std::string> outranked_by();

  // Somebody asked this replica to go, so it must not take over again at once: it preempts nobody
  // until the queue has let it lead once more.
  void was_asked_to_go() { may_preempt_ = false; }
  void leads() { may_preempt_ = true; }

 private:
  void loop(const std::stop_token& stop);
  void keep_entry();
  void take_over();

  LockClient locks_;
  const ElectorOptions& options_;
  Clock& clock_;
  LockName election_;
  LockName entry_name_;
  std::optional<Lease> entry_;  // the thread's own
  std::atomic<bool> may_preempt_{true};
  std::mutex mutex_;
  std::condition_variable signal_;
  std::jthread thread_;
};

}  // namespace baton::election
