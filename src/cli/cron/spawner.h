#pragma once

// Forks watchers (watcher.h) for a process that has threads, and so must not fork by itself.
//
//   baton cron ──── spawner ──┬── watcher ──── command ──── all that it starts
//                             └── watcher ──── …
//
// It is forked before there is any thread and before the store is opened: it and the watchers have
// no connection of ours, and no secret that we read later. It is in a session of its own, so that
// what is typed at a terminal reaches us alone. It ends when we do; the watchers then end their
// commands. If a watcher is killed, its processes become children of the spawner, which kills them.

#include <memory>
#include <mutex>

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
  // Before any thread is started, and before signals are blocked.
  static Result<std::unique_ptr<Spawner>> fork_early();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Thread-safe. The command is `apart`; its descriptors stay the caller's.
  Result<SpawnedWatcher> spawn(const WatchedCommand& command);

  // Hung up when it has died. Nothing can be started then.
  [[nodiscard]] int file() const { return socket_; }

 private:
  Spawner(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  pid_t pid_;
  int socket_;
  std::mutex mutex_;
};

}  // namespace baton::cli
