#pragma once

// Forks watchers (watcher.h) for a process that has threads, and so must not fork by itself.
//
//   baton cron ──── spawner ──┬── watcher ──── command ──── all that it starts
//                             └── watcher ──── …
//
// It is this program, started anew: it and the watchers have no connection of ours, and no secret
// that we have read. It is in a session of its own, so that what is typed at a terminal reaches us
// alone. It ends when we do; the watchers then end their commands. If a watcher is killed, its
// processes become children of the spawner, which kills them.
//
// A spawner that is stopped is continued. One that does not answer all the same, or has died, is
// killed and replaced: its watchers are nobody's children then, and go on with their commands.

#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "baton/result.h"
#include "cli/watcher.h"

namespace baton::cli {

// A command with its arguments has at most so many bytes, as its variables have.
inline constexpr std::size_t kMaxCommandBytes = 64U << 10U;

struct SpawnedWatcher {
  pid_t watcher;
  int socket;
  Trust* trust;  // a mapping of its own
};

class Spawner {
 public:
  // Before signals are blocked and ignored, for commands get them as they are now.
  static Result<std::unique_ptr<Spawner>> start();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Thread-safe, as all below. The command is `apart`; its descriptors stay the caller's.
  // The error is retryable if the process did not answer: nothing was started.
  Result<SpawnedWatcher> spawn(const WatchedCommand& command);

  // Always the same. Hung up when the process has died: then revive() it.
  [[nodiscard]] int file() const { return socket_; }

  // Starts another process if this one has died.
  Result<void> revive();

  // How often it was replaced.
  [[nodiscard]] int replaced() const { return replaced_; }

 private:
  Spawner();
  Result<void> launch();
  Result<void> replace();
  [[nodiscard]] bool is_gone() const;
  [[nodiscard]] int answer() const;
  int request(const std::string& text, const std::array<int, 4>& files);

  const bool ignores_sigpipe_;
  sigset_t mask_{};
  std::mutex mutex_;
  int socket_ = -1;
  pid_t pid_ = 0;              // 0: none, because it could not be replaced
  std::vector<pid_t> killed_;  // of those before it, not collected yet
  std::atomic<int> replaced_{0};
};

// What `main` is to do if it is called by this name: with the number of a descriptor.
inline constexpr const char* kSpawnerProgram = "baton-spawner";
[[noreturn]] void run_spawner(const char* descriptor);

}  // namespace baton::cli
