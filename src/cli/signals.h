#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

#include <sys/signalfd.h>

namespace baton::cli {

// The signals of `baton run`, read instead of handled. Make it before any thread is started:
// threads inherit the mask.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int file() const { return file_; }

  // False if none has come.
  bool next(signalfd_siginfo& signal) const;

 private:
  sigset_t before_{};
  int file_ = -1;
};

// A signal from the terminal has reached the whole job already, and with it the command.
[[nodiscard]] bool from_terminal(const signalfd_siginfo& signal);

// One that asks us to end.
[[nodiscard]] bool ends(const signalfd_siginfo& signal);

// While it lives, the first signal that asks us to end does: at once as long as there is nothing to
// clean up, after ask_politely by requesting the stop.
class StopOnSignal {
 public:
  explicit StopOnSignal(const Signals& signals);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }

  void ask_politely() { politely_ = true; }

  // The signal that came, after the thread that waits for it is gone; else 0.
  int finish();

 private:
  void watch(const Signals& signals);

  std::stop_source stop_;
  std::atomic<bool> politely_{false};
  std::atomic<bool> over_{false};
  int wake_ = -1;
  int signal_ = 0;
  std::thread thread_;
};

}  // namespace baton::cli
