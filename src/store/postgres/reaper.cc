#include "store/postgres/reaper.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace baton::store::postgres {
namespace {

constexpr Millis kFarewell{500};

}  // namespace

// Shared by the reaper and its thread, whichever ends last.
struct Reaper::Work {
  std::mutex mutex;
  std::condition_variable signal;
  std::vector<std::unique_ptr<Connection>> dead;
  bool stop = false;
  bool stopped = false;

  void run() {
    std::unique_lock lock(mutex);
    while (!stop || !dead.empty()) {
      signal.wait(lock, [&] { return stop || !dead.empty(); });
      auto batch = std::exchange(dead, {});
      for (auto& connection : batch) {
        const bool in_time = !stop;
        lock.unlock();
        if (in_time) connection->cancel();
        connection.reset();
        lock.lock();
      }
    }
    stopped = true;
    signal.notify_all();
  }
};

Reaper::Reaper() : work_(std::make_shared<Work>()) {}

Reaper::~Reaper() {
  std::unique_lock lock(work_->mutex);
  work_->stop = true;
  work_->signal.notify_all();
  if (started_) work_->signal.wait_for(lock, kFarewell, [&] { return work_->stopped; });
}

void Reaper::bury(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(work_->mutex);
  work_->dead.push_back(std::move(connection));
  if (!started_) std::thread([work = work_] { work->run(); }).detach();
  started_ = true;
  work_->signal.notify_all();
}

}  // namespace baton::store::postgres
