#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "baton/partitions.h"
#include "core/backoff.h"
#include "partitions/look.h"
#include "partitions/plan.h"
#include "partitions/set_name.h"
#include "partitions/worker.h"

namespace baton::partitions {

// The implementation of Partitions: looks at the store, asks plan.h what to do, and does it. One
// thread, the one that calls run(), decides everything. The threads of the client and of the
// workers only leave it events and wake it. Shared with all of them, so that a Member whose work
// never returns outlives its Partitions without harm.
class Member : public std::enable_shared_from_this<Member> {
 public:
  Member(LockClient locks, std::string_view set, std::size_t count, PartitionOptions options);

  // Whether this set can be divided at all, as far as can be said without asking.
  [[nodiscard]] Result<void> check() const;

  Result<void> run(const Partitions::Work& work, const std::stop_token& stop);

  // A run is about to begin on another thread: stop() waits for it.
  void expect_run();
  void expect_no_run();  // it could not begin
  void request_stop();
  // False if it still runs after `limit`, or if called from inside it.
  bool wait_until_over(Instant limit);

  [[nodiscard]] std::vector<std::size_t> owned() const;
  [[nodiscard]] bool inherited() const { return locks_.inherited(); }
  [[nodiscard]] Clock& clock() const { return clock_; }
  [[nodiscard]] Millis grace() const;
  void report(const Error& error) const;

 private:
  class Running;  // a run() under way

  // What this member does about one partition. `request` tells the answers to its requests apart:
  // one that was withdrawn may still be answered.
  struct Slot {
    Own own = Own::none;
    std::uint64_t request = 0;
    std::stop_source withdrawn{std::nostopstate};
    std::optional<Instant> free_since;
    bool overrun_reported = false;
    bool revoked = false;
  };

  // A request was answered, or a worker has ended.
  struct Event {
    std::size_t partition = 0;
    std::uint64_t request = 0;
    std::optional<Result<Lease>> answer;
    std::string threw;
  };

  Result<void> take_part();
  void leave();

  // member_pass.cc
  Result<void> pass();
  Result<bool> join(Look& seen);
  [[nodiscard]] std::string kept_out_by(const Look& seen) const;
  void stand_aside(const std::string& why);
  [[nodiscard]] View view_of(const Look& seen);
  void act(const Plan& plan);
  void ask(std::size_t partition, Own as, Millis wait);
  void withdraw(std::size_t partition);

  Result<void> handle_events();
  Result<void> answered(Event& event);
  void worker_ended(const Event& event);
  void begin_work(std::size_t partition, Lease lease);
  // Reports and revokes; gives the time of the next one that is due.
  [[nodiscard]] Instant watch_overruns();
  void tell_trouble(const Error& error);

  void post(Event event);
  void pause_until(Instant time, bool leaving);  // or until something has happened
  [[nodiscard]] bool stopping() const { return stop_.stop_requested(); }
  [[nodiscard]] bool is_member() const { return registration_ && registration_.valid(); }
  [[nodiscard]] std::shared_ptr<Worker> worker(std::size_t partition) const;
  [[nodiscard]] Metadata metadata() const;

  LockClient locks_;
  const std::string name_;
  const std::size_t count_;
  const PartitionOptions options_;
  Clock& clock_;
  const Result<SetName> set_;
  const bool can_transfer_;
  std::stop_source stop_;

  // Only the running thread uses these.
  Partitions::Work work_;
  Lease registration_;
  std::vector<Slot> slots_;
  std::uint64_t last_request_ = 0;
  std::size_t unanswered_ = 0;
  Instant look_at_{};
  Instant take_nothing_before_{};
  core::Backoff after_failure_;
  std::minstd_rand random_{std::random_device{}()};
  std::string last_trouble_;  // as it was reported; empty while all is well

  mutable std::mutex mutex_;
  std::condition_variable signal_;
  std::vector<Event> events_;
  std::map<std::size_t, std::shared_ptr<Worker>> workers_;
  std::thread::id runner_;  // none while nobody runs it
  bool expected_ = false;
};

}  // namespace baton::partitions
