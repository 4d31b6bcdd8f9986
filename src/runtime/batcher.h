#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "baton/clock.h"
#include "baton/store.h"
#include "runtime/gate.h"

namespace baton::runtime {

// Gathers the requests of many threads into few calls of the store, with no thread of its own:
// a lone caller sends its request at once; while as many batches as are worth it are in flight, the
// others gather, and one of them sends all that has gathered as soon as a batch comes back.
//
// Requests that only end something are not gathered with others: a store need not wait for its disk
// to answer them, and shall not have to because of their company.
class Batcher {
 public:
  Batcher(LockStore& store, Clock& clock, const Capabilities& can)
      : store_(store), clock_(clock), direct_(!can.needs_batching), parallel_(can.parallel) {}

  // Blocks until the reply is there or the store gave up. The request travels with others and is
  // back, as it was, when this returns. `sent` is now; if the request has to gather first, it
  // becomes the time when it went.
  Result<Reply> submit(Request& request, Deadline deadline, Instant& sent);

 private:
  static constexpr std::size_t kMaxBatch = 512;

  // Whoever comes first leads it; the others follow.
  struct Batch {
    std::vector<Request*> requests;       // the callers', who wait meanwhile
    Deadline deadline = Deadline::min();  // the latest of theirs
    Instant sent;
    bool may_go = false;
    std::condition_variable go;

    std::optional<Result<std::vector<Reply>>> replies;  // there once it is answered
    Gate answered;
  };

  struct Lane {
    std::deque<std::shared_ptr<Batch>> gathering;  // all but the last are full
  };

  Result<Reply> send_alone(const Request& request, Deadline deadline);
  Result<std::vector<Reply>> send_all(Batch& batch);
  void lead(Lane& lane, Batch& batch, std::unique_lock<std::mutex> lock);
  static Result<Reply> reply_in(Batch& batch, std::size_t place);

  void let_next_go(Lane& lane);  // under the mutex

  void landed(Lane& lane);

  LockStore& store_;
  Clock& clock_;
  const bool direct_;
  const std::size_t parallel_;
  std::mutex mutex_;
  std::array<Lane, 2> lanes_;  // endings in the second
  std::size_t in_flight_ = 0;
};

}  // namespace baton::runtime
