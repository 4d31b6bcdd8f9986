#include "schedule/handler_pool.h"

namespace baton::schedule {

void HandlerPool::submit(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->closing) return;
  shared_->tasks.push_back(std::move(task));
  if (shared_->tasks.size() <= shared_->idle) return shared_->work.notify_one();
  ++shared_->alive;
  auto worker = std::make_shared<Worker>();
  worker->thread = std::thread([shared = shared_, worker] { loop(shared, worker); });
  workers_.push_back(std::move(worker));
}

void HandlerPool::loop(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Worker>& self) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    ++shared->idle;
    shared->work.wait(lock, [&] { return !shared->tasks.empty() || shared->closing; });
    --shared->idle;
    if (shared->tasks.empty()) break;
    auto task = std::move(shared->tasks.front());
    shared->tasks.pop_front();
    ++shared->working;
    lock.unlock();
    task();
    task = nullptr;  // what it holds may need the lock to go
    lock.lock();
    --shared->working;
  }
  --shared->alive;
  self->ended = true;
  shared->change.notify_all();
}

void HandlerPool::close() {
  std::unique_lock lock(shared_->mutex);
  shared_->closing = true;
  shared_->work.notify_all();
  shared_->change.wait(
      lock, [&] { return shared_->alive == shared_->working && shared_->tasks.empty(); });
  for (const auto& worker : workers_) {
    if (worker->ended) {
      lock.unlock();
      worker->thread.join();
      lock.lock();
    } else {
      worker->thread.detach();
    }
  }
  workers_.clear();
}

}  // namespace baton::schedule
