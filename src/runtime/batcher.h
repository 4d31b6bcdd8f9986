#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "baton/store.h"

namespace baton::runtime {

// Gathers the requests of many threads into few calls of the store, with no thread of its own:
// a lone caller sends its request at once; while as many batches as are worth it are in flight, the
// others gather, and one of them sends all that has gathered as soon as a batch comes back.
class Batcher {
 public:
  Batcher(LockStore& store, const Capabilities& can)
      : store_(store), direct_(!can.needs_batching), parallel_(can.parallel) {}

  // Blocks until the reply is there or the store gave up.
  Result<Reply> submit(const Request& request, Deadline deadline);

 private:
  static constexpr std::size_t kMaxBatch = 512;

  enum State : int { gathering, leading, done };
  struct Call {
    const Request* request = nullptr;
    Deadline deadline;
    std::atomic<int> state{gathering};
    std::optional<Result<Reply>> result;
  };

  // Shared, because a caller may be gone before the one that woke it is done with waking.
  using Batch = std::vector<std::shared_ptr<Call>>;

  void lead();
  Batch take_batch();
  void send(const Batch& batch);
  void pass_the_lead();

  LockStore& store_;
  const bool direct_;
  const std::size_t parallel_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Call>> waiting_;
  std::size_t in_flight_ = 0;
};

}  // namespace baton::runtime
