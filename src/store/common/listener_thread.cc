#include "store/common/listener_thread.h"

#include <array>

#include <poll.h>

#include "core/backoff.h"
#include "store/common/jitter_bits.h"

namespace baton::store {

void ListenerThread::wake() {
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }
  event_.signal();
}

void ListenerThread::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  event_.signal();
  thread_.join();
}

void ListenerThread::pause(Millis most, const std::stop_token& stop, int socket) {
  if (stop.stop_requested()) return;
  std::array<pollfd, 2> waiting{pollfd{event_.file(), POLLIN, 0}, pollfd{socket, POLLIN, 0}};
  poll(waiting.data(), socket < 0 ? 1 : 2, static_cast<int>(most.count()));
  event_.clear();
}

void ListenerThread::work(const std::stop_token& stop) {
  core::Backoff backoff(Millis(50), Millis(5000));
  while (!stop.stop_requested()) {
    if (serve_(stop)) backoff.reset();
    if (!stop.stop_requested()) pause(backoff.next(jitter_bits()), stop, -1);
  }
}

}  // namespace baton::store
