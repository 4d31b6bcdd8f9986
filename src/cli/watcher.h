#pragma once

// The process between baton and its command.
//
//   baton ──── watcher ──── command ──── all that it starts
//
// It is the parent of the command and a subreaper: what the command starts stays below it, also a
// daemon in a session of its own. baton tells it until when the lease is trusted, in shared memory.
// It ends everything below it if baton dies, or stands still past that time: SIGTERM, and SIGKILL
// before the store may give the lock to another. While baton is well it does nothing but report the
// end of the command.
//
//          start                     end_at passed, or baton is dead        kill_at passed
//   idle ─────────▶ running ──────────────────────────────────▶ SIGTERM ────────────────▶ SIGKILL
//     ▲                │ let_go                                    │ nobody left             │
//     └────────────────┴──────────────────────────────────────────┴────────────────────────┘
//
// It blocks all signals that can be, so that Ctrl-C and Ctrl-Z do not reach it. SIGSTOP does, but
// baton continues it, and if baton cannot, then the death of baton does, or a timer when something
// is due. It stays in the
// process group of baton: as the parent of a member in another group it would keep that group from
// being orphaned, and its end, while baton is stopped, would send SIGHUP to the whole job.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"

namespace baton::cli {

// A message to the watcher is one of these, as one byte. `start` is followed by the variables that
// the command gets on top of our environment, each with a zero byte at its end.
enum class Order : char { start, collect, look, let_go };

enum class Event : std::uint8_t {
  started,      // value: the process id of the command
  not_started,  // value: errno of exec
  too_late,     // the lease had run out: the command was not started
  failed,       // value: errno of something before that
  exited,       // value: the exit code, or 128 + signal; its process id is kept until `collect`
  none_left,    // the command and all that it started have ended
};
struct Report {
  Event event;
  int value;
};

// Shared memory. Times are nanoseconds of BootClock.
struct Trust {
  static constexpr std::int64_t kNever = INT64_MAX;
  std::atomic<std::int64_t> end_at{kNever};   // SIGTERM, if baton has not done it by then
  std::atomic<std::int64_t> kill_at{kNever};  // SIGKILL
  std::atomic<bool> ended{false};             // the watcher has begun to end it, baton is alive
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

struct WatchedCommand {
  std::string program;  // a path
  std::vector<std::string> command;
  Millis grace{0};  // from SIGTERM to SIGKILL, if baton dies

  // A command that nobody sits in front of (baton cron): in a session of its own, in `directory`
  // unless that is empty, with no variable but those it is started with, nothing to read, and
  // these two descriptors, which the watcher closes, for its output. It is started once.
  bool apart = false;
  std::string directory = {};
  int out = -1;
  int errors = -1;
};

// BATON_STORE=… for the command: without its password, and with an absolute path, so that a baton
// that the command calls after a change of directory still locks in the same file.
[[nodiscard]] std::string store_variable(std::string_view variable);

// The whole life of the watcher, from the fork on. `socket` is a SOCK_SEQPACKET; its other end is
// baton's alone.
[[noreturn]] void watch(int socket, Trust& trust, const WatchedCommand& command);

}  // namespace baton::cli
