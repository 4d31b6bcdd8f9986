#pragma once

#include <sys/types.h>

#include <ios>
#include <string>
#include <vector>

#include "baton/clock.h"

namespace baton::documents {

// What the kernel says of a process: 'T' stands still, as after SIGSTOP; 'Z' has ended; 0: none.
[[nodiscard]] char process_state(pid_t pid);

// A process of a service, started again when it dies: at once at first, then after 0.2 to 5 s.
class Replica {
 public:
  struct How {
    std::string instance;  // validation-2
    std::vector<std::string> arguments;
    std::vector<std::string> environment;  // NAME=value: what others must not read in `ps`
    std::string log_file;
    std::string run_file;
  };
  explicit Replica(How how) : how_(std::move(how)) {}

  // Starts it if it does not run and its pause is over; takes note of its end. True if it ended.
  bool tend(Instant now);
  void signal(int number) const;
  [[nodiscard]] bool running() const { return pid_ != 0; }

  [[nodiscard]] const std::string& instance() const { return how_.instance; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int restarts() const { return restarts_; }
  // "killed by signal 9", or why it could not start.
  [[nodiscard]] const std::string& last_end() const { return last_end_; }
  // It refused its settings when it was first started: it will do so again.
  [[nodiscard]] bool misconfigured() const { return misconfigured_; }
  // Again and again it said soon after its start that it cannot work, as with a broker that refuses
  // its password: it is not started again.
  [[nodiscard]] bool given_up() const { return refusals_ >= kMostRefusals; }
  [[nodiscard]] Millis starts_in(Instant now) const;  // of one that does not run
  // Where it serves; empty: it does not yet.
  [[nodiscard]] std::string url() const;
  void retire() { retired_ = true; }  // it is not started again

 private:
  static constexpr int kMostRefusals = 6;

  void start(Instant now);
  [[nodiscard]] std::string describe_end(int status) const;

  How how_;
  pid_t pid_ = 0;
  bool retired_ = false;
  bool misconfigured_ = false;
  int restarts_ = -1;
  std::streamoff log_began_ = 0;  // how long the log was when it started
  int quick_ends_ = 0;
  int refusals_ = 0;  // of these, in a row, that it told of
  Instant started_{};
  Instant not_before_{};
  std::string last_end_;
};

}  // namespace baton::documents
