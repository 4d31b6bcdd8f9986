#include "store/postgres/reaper.h"

#include <utility>

namespace baton::store::postgres {

Reaper::~Reaper() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void Reaper::bury(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  dead_.push_back(std::move(connection));
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }
  signal_.notify_one();
}

void Reaper::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (signal_.wait(lock, stop, [&] { return !dead_.empty(); })) {
    auto batch = std::exchange(dead_, {});
    lock.unlock();
    for (auto& connection : batch) {
      if (!stop.stop_requested()) connection->cancel();
      connection.reset();
    }
    lock.lock();
  }
}

}  // namespace baton::store::postgres
