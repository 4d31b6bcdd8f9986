#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>

namespace baton::test {

// While it lives, a process of ours stands still, whatever signals it is sent: SIGSTOP does not do
// for a baton-watcher, which has itself continued when the lock runs out. The process must be a
// descendant, and the same thread must end what it began, as ptrace(2) asks.
class Frozen {
 public:
  explicit Frozen(pid_t pid) : pid_(pid) {
    frozen_ = ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) == 0 &&
              ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) == 0;
    pid_t waited = -1;
    while (frozen_ && (waited = waitpid(pid_, nullptr, __WALL)) < 0 && errno == EINTR) {
    }
    frozen_ = frozen_ && waited == pid_;
  }
  ~Frozen() { ptrace(PTRACE_DETACH, pid_, nullptr, nullptr); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

  explicit operator bool() const { return frozen_; }

 private:
  const pid_t pid_;
  bool frozen_ = false;
};

}  // namespace baton::test
