#pragma once

// Watches over a command that runs under a lock: for `baton run` and `baton elect`.

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "baton/clock.h"
#include "baton/lease.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/signals.h"

namespace baton::cli {

// Makes a stop token something that poll can wait for.
class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& stop);
  ~StopEvent();
  StopEvent(const StopEvent&) = delete;
  StopEvent& operator=(const StopEvent&) = delete;
  [[nodiscard]] int file() const { return file_; }

 private:
  struct Notify {
    int file;
    void operator()() const;
  };
  int file_;
  std::stop_callback<Notify> callback_;
};

// From the start of the command until it, or on loss all that it started, has ended.
class Supervisor {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // `loss` fires before another one can have the lock.
  Supervisor(Child& child, const Signals& signals, const Lease& lease, const std::stop_token& loss,
             Millis grace, Warn warn);

  ~Supervisor() { child_.let_go(); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The same for a command that gets no signals of ours.
  Supervisor(Child& child, const Lease& lease, Millis grace, Warn warn);

  // Other reasons to end the command, by SIGTERM, and SIGKILL after the grace. Set before wait().
  struct Limits {
    std::stop_token stop;           // when it fires
    Millis timeout{0};              // so long after wait() has begun; 0: never
    bool end_what_is_left = false;  // its own end ends all that it has started, too
  };
  void limit(Limits limits);

  // With an error, `exec_error` is errno of exec, or 0. `lost` if the lease has run out before:
  // then the command was not started.
  Result<void> start(const std::vector<std::string>& environment, int& exec_error);

  // The exit code of the command.
  int wait();

  [[nodiscard]] bool lost() const { return lost_; }

  // Something is left although the lock is over: we may not end it, or cannot find it.
  [[nodiscard]] bool left_behind() const { return left_behind_; }

  // Whether a signal that asks us to end was passed on to the command.
  [[nodiscard]] bool asked_to_end() const { return asked_to_end_; }

  // Why we have asked it to end while the lock was ours.
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  bool look_at_lease();  // false if it has run out
  [[nodiscard]] int look_within() const;
  [[nodiscard]] int poll_for() const;
  void heed_limits(bool command_ended);
  void ask_to_end();
  void begin_end();
  void end_at(Instant kill_at);
  void watcher_was_killed();
  void pass_on(const signalfd_siginfo& signal);
  void tell(const Reached& reached);

  Child& child_;
  const Signals* signals_;  // none: nobody's
  const Lease& lease_;
  Millis grace_;
  Warn warn_;
  StopEvent loss_;
  bool lost_ = false;
  bool ending_ = false;        // all that is left is to end
  bool out_of_reach_ = false;  // somebody is left, and nobody heard the last SIGKILL
  int rounds_in_vain_ = 0;     // of SIGKILL that reached nobody
  bool left_behind_ = false;
  bool told_ = false;
  bool asked_to_end_ = false;
  std::optional<StopEvent> stop_;
  Limits limits_;
  bool timed_out_ = false;
  bool stopped_ = false;
  bool asked_ = false;  // by us, to end
  Instant timeout_at_ = Instant::max();
  Instant rest_at_ = Instant::max();         // what the command has left behind is asked to end
  Instant patience_until_ = Instant::max();  // what was asked to end is killed
  Instant over_at_;                          // the store may give the lock away
  Instant kill_at_{};
};

// Never BATON_STORE: it may hold a password that the command has no business with.
[[nodiscard]] std::vector<std::string> environment_of(const Lease& lease);

// How long the command may take to end if baton is killed. An advisory lock is free the moment its
// session ends, and gives no time; a lease does until it has run out.
[[nodiscard]] Millis grace_if_killed(const std::string& store, Millis grace);

// Says so, and gives the exit code back.
int cannot_start(Context& context, const std::string& command, int code);

}  // namespace baton::cli
