#pragma once

// A command that runs under a lock, and everything that it starts.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "baton/clock.h"
#include "baton/result.h"
#include "cli/process_tree.h"
#include "cli/watcher.h"

namespace baton::cli {

[[nodiscard]] Error ran_out_before_start();

class Spawner;

// Where the program is: itself if it has a '/', else the first in $PATH that may be executed. Else
// the exit code a shell would give: 127 if there is none, 126 if it is not executable.
struct Program {
  std::string path;
  int exit_code = 0;
};
[[nodiscard]] Program find_program(const std::string& name);
[[nodiscard]] Program find_program(const std::string& name, const std::string& path);

// The command is a child of a watcher process (watcher.h), which ends it if we cannot. It stays in
// our process group: a terminal then treats both as one job, so that Ctrl-C and Ctrl-Z reach it
// once, pipelines work, and it may read the keyboard. What must reach everything it started goes to
// the descendants of the watcher one by one instead of to a group.
//
// If the watcher is killed, the kernel kills the command, unless that has become another user, and
// what the command has started becomes ours.
class Child {
 public:
  // Forks the watcher: before any thread is started, and before signals are blocked, for the
  // command gets the signal mask of this moment.
  static Result<std::unique_ptr<Child>> prepare(WatchedCommand command);

  // The same with a watcher that a spawner forks, at any time and on any thread (cron/spawner.h).
  static Result<std::unique_ptr<Child>> prepare(Spawner& spawner, const WatchedCommand& command);
  ~Child();  // the watcher ends by itself
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // If nobody moves them on, the watcher sends SIGTERM at `end_at` and SIGKILL at `kill_at`.
  void trust_until(Instant end_at, Instant kill_at);

  // We end it ourselves; the watcher only sees to it that it is gone at `kill_at`.
  void ends_by(Instant kill_at);

  // Starts it, once the one before has ended. With an error, `exec_error` is errno of exec, or 0.
  Result<void> start(const std::vector<std::string>& environment, int& exec_error);

  // Readable if reap may have something to tell.
  [[nodiscard]] int file() const { return socket_; }

  // The exit code of the command once it has ended, 128 + signal if it was killed by one.
  std::optional<int> reap();

  // Whether it or anything that it started was left then.
  [[nodiscard]] bool any_left() const { return any_left_; }

  // The watcher has begun to end it, because nobody moved `end_at` on in time.
  [[nodiscard]] bool ended_by_watcher() const { return trust_->ended; }
  [[nodiscard]] bool watcher_is_gone() const { return watcher_ == 0; }

  Reached signal(int number) const;      // the command, if it still runs
  Reached signal_all(int number) const;  // it and all its descendants

  // It has ended, or we have given up: what is left may stay.
  void let_go();

  // The process group of something else that runs below us, which signal_all() leaves alone; 0:
  // none. There is one for all children of this process.
  static void spare(pid_t group);

 private:
  Child(pid_t watcher, int socket, Trust& trust, bool is_ours)
      : root_(is_ours ? getpid() : watcher),
        is_ours_(is_ours),
        watcher_(watcher),
        socket_(socket),
        trust_(&trust) {}
  bool tell(Order order, const std::string& more = {}) const;
  void reap_orphans();

  const pid_t root_;    // all below it is the command's, but the watcher
  const bool is_ours_;  // the watcher: else it is the spawner's
  pid_t watcher_;       // 0 if it has died
  int socket_;
  Trust* trust_;
  pid_t pid_ = 0;
  std::optional<int> exit_code_;
  bool any_left_ = true;
};

}  // namespace baton::cli
