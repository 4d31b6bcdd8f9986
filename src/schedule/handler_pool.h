#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::schedule {

// Threads for handlers, started when they are needed. The submitter limits how many there are. A
// handler that never returns keeps its thread; close() does not wait for it.
class HandlerPool {
 public:
  HandlerPool() : shared_(std::make_shared<Shared>()) {}
  ~HandlerPool() { close(); }
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  void submit(std::function<void()> task);

  // Ends the threads that have nothing to do, and leaves the others to themselves: they end when
  // their task does. Idempotent.
  void close();

 private:
  struct Worker {
    std::thread thread;
    bool ended = false;
  };
  struct Shared {
    std::mutex mutex;
    std::condition_variable work;
    std::condition_variable change;
    std::deque<std::function<void()>> tasks;
    std::size_t idle = 0;
    std::size_t working = 0;
    std::size_t alive = 0;
    bool closing = false;
  };

  static void loop(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Worker>& self);

  std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Worker>> workers_;
};

}  // namespace baton::schedule
