#pragma once

// Which consumers live. Beside the database there is a file with one slot a consumer. A consumer
// keeps its slot locked (an open file description lock): the kernel frees it when its process dies,
// however it dies. In the slot stand its number, when it last showed that it runs, and its lease:
// a stopped process keeps its locks, but no longer shows that it runs.
//
// The file also wakes those that wait: closing a slot tells inotify, and so does poke().

#include <cstdint>
#include <optional>
#include <string>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::broker {

[[nodiscard]] std::string presence_path(const std::string& database);

// One open file description. Not thread-safe but for show().
class Presence {
 public:
  // Made with the mode of the database if there is none.
  [[nodiscard]] static Result<Presence> open(const std::string& database);
  Presence(Presence&& other) noexcept;
  Presence& operator=(Presence&& other) noexcept;
  ~Presence();

  // Locks a free slot and gives its number.
  [[nodiscard]] Result<int> take_slot();

  // Writes the locked slot: this consumer runs now.
  void show(int slot, std::int64_t consumer, Millis lease) const;

  // Whether this consumer of another open file description lives. One that has ended never lives
  // again; one that was stopped past its lease may.
  [[nodiscard]] bool lives(int slot, std::int64_t consumer) const;

  // Wakes those that wait, after a commit that may concern them.
  void poke() const;

 private:
  explicit Presence(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace baton::broker
