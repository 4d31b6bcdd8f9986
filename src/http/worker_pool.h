#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "baton/export.h"

namespace baton::http {

// A few threads for work that blocks. Jobs run in the order in which they came.
class BATON_EXPORT WorkerPool {
 public:
  using Job = std::function<void()>;

  explicit WorkerPool(std::size_t threads, std::size_t max_queued = 1024);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // New work: false, and not taken, if max_queued jobs already wait.
  bool offer(Job job);

  // The rest of work that has been accepted, which must not be refused half way. After stop it is
  // dropped.
  void post(Job job);

  // Finishes the jobs that run, drops those that wait. Idempotent; not from a job.
  void stop();

  [[nodiscard]] std::size_t queued() const;

 private:
  bool put(Job& job, std::size_t limit);
  void work();

  const std::size_t max_queued_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace baton::http
