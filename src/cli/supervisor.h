#pragma once

// Watches over a command that runs under a lock: for `baton run` and `baton elect`.

#include <functional>
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

// Until the command, or on loss all that it started, has ended.
class Supervisor {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // `loss` fires before another one can have the lock.
  Supervisor(Child& child, const Signals& signals, const Lease& lease, const std::stop_token& loss,
             Millis grace, Warn warn);

  // The exit code of the command.
  int wait();

  [[nodiscard]] bool lost() const { return lost_; }

  // Something is left although the lock is over: we may not end it, or cannot find it.
  [[nodiscard]] bool left_behind() const { return left_behind_; }

  // Whether a signal that asks us to end was passed on to the command.
  [[nodiscard]] bool asked_to_end() const { return asked_to_end_; }

 private:
  void look_at_lease();
  void begin_end();
  void pass_on(const signalfd_siginfo& signal);
  void tell(const Reached& reached);

  Child& child_;
  const Signals& signals_;
  const Lease& lease_;
  Millis grace_;
  Warn warn_;
  StopEvent loss_;
  bool lost_ = false;
  bool out_of_reach_ = false;  // nobody heard the last SIGKILL
  bool left_behind_ = false;
  bool told_ = false;
  bool asked_to_end_ = false;
  Instant over_at_;  // the store may give the lock away
  Instant kill_at_{};
};

// Never BATON_STORE: it may hold a password that the command has no business with.
[[nodiscard]] std::vector<std::string> environment_of(const Lease& lease);

// Says so, and gives the exit code back.
int cannot_start(Context& context, const std::string& command, int code);

}  // namespace baton::cli
