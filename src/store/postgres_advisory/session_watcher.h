#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/common/timed_mutex.h"
#include "store/common/wake_event.h"
#include "store/postgres_advisory/grants.h"

namespace baton::store::postgres_advisory {

// Watches the sockets of all sessions that wait for a lock or have one: a lock that is handed over
// is taken in at once, and one whose session has ended is lost at once. Also ends by our clock what
// nobody asks about. One thread.
class SessionWatcher {
 public:
  using Deliver = std::function<void(const std::vector<core::Wake>&)>;

  // `mutex` is the store's; `deliver` is called without it.
  SessionWatcher(const AdvisorySettings& settings, TimedMutex& mutex, Grants& grants,
                 Deliver deliver);
  ~SessionWatcher();
  SessionWatcher(const SessionWatcher&) = delete;
  SessionWatcher& operator=(const SessionWatcher&) = delete;

  // There are other sessions to watch than before.
  void look_again();

 private:
  struct Watched {
    int socket;
    std::string key;
    GrantId grant;
  };
  void work(const std::stop_token& stop);
  [[nodiscard]] std::vector<Watched> all_sessions() const;
  [[nodiscard]] int patience() const;
  void handle(const std::vector<Watched>& spoken);

  const AdvisorySettings& settings_;
  TimedMutex& mutex_;
  Grants& grants_;
  const Deliver deliver_;
  WakeEvent event_;
  std::jthread thread_;
};

}  // namespace baton::store::postgres_advisory
