#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "store/kubernetes/lease_api.h"

namespace baton::store::kubernetes {

// Follows the Leases of the namespace on a connection of its own, from the first time that somebody
// needs it. Goes on from where it was after a lost connection, and starts over when the server no
// longer knows that place.
class Listener {
 public:
  using OnEvent = LeaseApi::OnEvent;

  // `on_break` is called now and then, minutes apart, between two connections.
  Listener(LeaseApi& api, OnEvent on_event, std::function<void()> on_break)
      : api_(api), on_event_(std::move(on_event)), on_break_(std::move(on_break)) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void need();

  // It is connected, and what changes is heard at once; unless the line is dead and nobody has
  // noticed yet.
  [[nodiscard]] bool hears() const { return hears_; }

 private:
  void follow(const std::stop_token& stop);
  void pause(Millis time, const std::stop_token& stop);

  LeaseApi& api_;
  const OnEvent on_event_;
  const std::function<void()> on_break_;
  std::atomic<bool> hears_ = false;
  std::once_flag started_;
  std::jthread thread_;
};

}  // namespace baton::store::kubernetes
