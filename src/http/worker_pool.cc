#include "http/worker_pool.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

namespace baton::http {

WorkerPool::WorkerPool(std::size_t threads, std::size_t max_queued) : max_queued_(max_queued) {
  for (std::size_t i = 0; i < std::max<std::size_t>(1, threads); ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::put(Job& job, std::size_t limit) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || queue_.size() >= limit) return false;
    queue_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

bool WorkerPool::offer(Job job) { return put(job, max_queued_); }

void WorkerPool::post(Job job) { put(job, std::numeric_limits<std::size_t>::max()); }

std::size_t WorkerPool::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void WorkerPool::stop() {
  std::deque<Job> dropped;  // what they hold may take its time to go: not under the mutex
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(queue_);
  }
  changed_.notify_all();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    try {
      job();
    } catch (const std::exception&) {
      // The job's http::Reply answers with an error when it is destroyed.
    }
  }
}

}  // namespace baton::http
