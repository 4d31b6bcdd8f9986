#pragma once

#include <functional>
#include <thread>

#include "baton/clock.h"
#include "store/common/wake_event.h"

namespace baton::store {

// The thread on which a store listens for wake-ups: it connects again and again, with pauses that
// grow until a connection has worked.
class ListenerThread {
 public:
  // Connects, and listens until the connection breaks or the thread is stopped. Gives whether the
  // connection ever worked.
  using Serve = std::function<bool(const std::stop_token& stop)>;

  explicit ListenerThread(Serve serve) : serve_(std::move(serve)) {}
  ~ListenerThread() { stop(); }
  ListenerThread(const ListenerThread&) = delete;
  ListenerThread& operator=(const ListenerThread&) = delete;

  // Starts it if it does not run, and ends its pause if it does. Not for two threads at once.
  void wake();
  void stop();

  // On the thread: waits for input on the socket (-1: none), for wake(), or until the time is over.
  void pause(Millis most, const std::stop_token& stop, int socket);

 private:
  void work(const std::stop_token& stop);

  const Serve serve_;
  WakeEvent event_;
  std::jthread thread_;
};

}  // namespace baton::store
