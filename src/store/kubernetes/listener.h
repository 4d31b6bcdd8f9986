#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "store/kubernetes/lease_api.h"

namespace baton::store::kubernetes {

// Follows the Leases of the namespace on a connection of its own, while somebody needs it. Goes on
// from where it was after a lost connection, and starts over when the server no longer knows that
// place. Thread-safe.
class Listener {
 public:
  using OnEvent = LeaseApi::OnEvent;

  // `on_break` is called now and then, minutes apart, between two connections.
  Listener(LeaseApi& api, OnEvent on_event, std::function<void()> on_break)
      : api_(api), on_event_(std::move(on_event)), on_break_(std::move(on_break)) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // What changes after `version`.
  void listen(std::uint64_t version);
  void rest();

  // It is connected, and what changes is heard at once; unless the line is dead and nobody has
  // noticed yet.
  [[nodiscard]] bool hears() const { return hears_; }

 private:
  void follow(const std::stop_token& stop);
  [[nodiscard]] bool wait_until_wanted(const std::stop_token& stop);
  void pause(Millis time, const std::stop_token& stop);
  void note_place(const WatchEvent& event);

  LeaseApi& api_;
  const OnEvent on_event_;
  const std::function<void()> on_break_;
  std::atomic<bool> hears_ = false;
  std::mutex mutex_;
  std::condition_variable_any signal_;
  bool wanted_ = false;
  std::uint64_t version_ = 0;  // the place to go on from; 0: whatever there is
  std::stop_source stream_;    // ends the present connection
  std::jthread thread_;
};

}  // namespace baton::store::kubernetes
