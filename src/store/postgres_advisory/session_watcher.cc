#include "store/postgres_advisory/session_watcher.h"

#include <algorithm>

#include <poll.h>

namespace baton::store::postgres_advisory {

SessionWatcher::SessionWatcher(const AdvisorySettings& settings, TimedMutex& mutex, Grants& grants,
                               Deliver deliver)
    : settings_(settings), mutex_(mutex), grants_(grants), deliver_(std::move(deliver)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

SessionWatcher::~SessionWatcher() {
  thread_.request_stop();
  look_again();
  thread_.join();
}

void SessionWatcher::look_again() { event_.signal(); }

std::vector<SessionWatcher::Watched> SessionWatcher::all_sessions() const {
  std::vector<Watched> all;
  for (const auto& [key, name] : grants_.table().names()) {
    for (const auto& entry : name.entries) {
      all.push_back({entry->session->socket(), key, entry->lock.grant});
    }
  }
  return all;
}

// Milliseconds until something is over by our clock; a test moves its clock itself.
int SessionWatcher::patience() const {
  constexpr int kMost = 60'000;
  const StoreTime next = grants_.next_end();
  if (!settings_.timers || next == StoreTime::max()) return kMost;
  const auto left = std::chrono::ceil<Millis>(next - grants_.now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kMost));
}

void SessionWatcher::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<Watched> watched;
    int patience_ms = 0;
    {
      const std::lock_guard lock(mutex_);
      watched = all_sessions();
      patience_ms = patience();
    }
    std::vector<pollfd> sockets{{event_.file(), POLLIN, 0}};
    for (const Watched& one : watched) sockets.push_back({one.socket, POLLIN, 0});
    poll(sockets.data(), sockets.size(), patience_ms);
    event_.clear();
    std::vector<Watched> spoken;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (sockets[i + 1].revents != 0) spoken.push_back(watched[i]);
    }
    if (!stop.stop_requested()) handle(spoken);
  }
}

void SessionWatcher::handle(const std::vector<Watched>& spoken) {
  std::vector<core::Wake> wakes;
  {
    const std::lock_guard lock(mutex_);
    const Deadline deadline = BootClock::now() + settings_.server.apply_limit;
    for (const Watched& one : spoken) {
      GrantEntry* entry = grants_.table().find(one.key, one.grant);
      if (entry != nullptr && entry->session->socket() == one.socket) {
        grants_.hear(*entry, deadline);
      }
    }
    if (settings_.timers) {
      std::vector<std::string> due;
      for (const auto& [key, name] : grants_.table().names()) {
        const bool over = std::any_of(name.entries.begin(), name.entries.end(),
                                      [&](const auto& e) { return e->over() <= grants_.now(); });
        if (over) due.push_back(key);
      }
      for (const auto& key : due) grants_.settle(key, deadline);
    }
    wakes = grants_.take_wakes();
  }
  if (!wakes.empty()) deliver_(wakes);
}

}  // namespace baton::store::postgres_advisory
