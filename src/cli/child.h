#pragma once

// A command that runs under a lock, and everything that it starts.

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "baton/result.h"

namespace baton::cli {

// Where the program is: itself if it has a '/', else the first in $PATH that may be executed. Else
// the exit code a shell would give: 127 if there is none, 126 if it is not executable.
struct Program {
  std::string path;
  int exit_code = 0;
};
[[nodiscard]] Program find_program(const std::string& name);

// Whom a signal has reached.
struct Reached {
  bool anybody = false;
  std::vector<pid_t> refused;  // whom we may not signal; a parent comes before its children
};

// The child stays in our process group: a terminal then treats both as one job, so that Ctrl-C and
// Ctrl-Z reach it once, pipelines work, and it may read the keyboard. What must reach everything it
// started goes to our descendants one by one instead of to a group; orphans become our children
// (PR_SET_CHILD_SUBREAPER), so none gets away. It is killed if we are, unless it has become
// another user: that ends the kernel's promise, and our right to signal it.
//
// Start it from the main thread: the kernel kills it when the *thread* that started it ends.
class Child {
 public:
  // `mask` is the signal mask it gets. An error is errno of exec.
  static Result<Child> start(const std::string& program, const std::vector<std::string>& command,
                             const std::vector<std::string>& environment, const sigset_t& mask,
                             int& exec_error);

  // Collects all that have ended; gives the exit code of the command once it has, 128 + signal if
  // it was killed by one.
  std::optional<int> reap();

  // Whether it or anything that it started was left then.
  [[nodiscard]] bool any_left() const { return any_left_; }

  Reached signal(int number) const;      // the command, if it still runs
  Reached signal_all(int number) const;  // it and all its descendants

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  std::optional<int> exit_code_;
  bool any_left_ = true;
};

}  // namespace baton::cli
