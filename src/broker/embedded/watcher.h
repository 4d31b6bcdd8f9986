#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "baton/clock.h"
#include "broker/embedded/presence.h"

namespace baton::broker {

// One thread for all subscriptions of a broker object. It shows that their consumers run, and wakes
// those that wait when inotify tells of a change. Hints only: those that wait also look by
// themselves.
class Watcher {
 public:
  [[nodiscard]] static std::shared_ptr<Watcher> start(const std::string& database, Millis lease);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Shows the consumer from now on, until remove(). The presence must live until then.
  void add(const Presence& presence, int slot, std::int64_t consumer);
  void remove(const Presence& presence);

  // A number that changes with every wake-up: take it before you look, wait if there was nothing.
  // Wake-ups only make it faster: look again after kLookEvery in any case.
  static constexpr Millis kLookEvery{100};
  [[nodiscard]] std::uint64_t seen();
  void wait(std::uint64_t seen, Deadline until);

 private:
  struct Shown {
    const Presence* presence;
    int slot;
    std::int64_t consumer;
  };

  Watcher(const std::string& database, Millis lease);
  void run(const std::stop_token& stop);
  void show_all();
  void wake();
  // Reads what inotify has to say: whether anything, and whether a slot was closed.
  [[nodiscard]] std::pair<bool, bool> read_events() const;

  const Millis lease_;
  int inotify_ = -1;
  int stop_event_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wakes_ = 0;
  std::vector<Shown> shown_;
  std::jthread thread_;
};

}  // namespace baton::broker
