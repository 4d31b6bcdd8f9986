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
#include "runtime/futex_value.h"

namespace baton::runtime {

// Gathers the requests of many threads into few calls of the store, with no thread of its own:
// a lone caller sends its request at once; while as many batches as are worth it are in flight, the
// others gather, and one of them sends all that has gathered as soon as a batch comes back.
//
// Every caller returns by its own deadline. One whose time is up leaves its batch: before the batch
// is sent, with its request, which then was never sent; after that, without a reply. The caller
// that sends is in the store until the reply is there, so the call has that caller's deadline. That
// is the first one of the batch, unless another one has more than twice its time left.
//
//   gathering ──▶ may go ──▶ sealed: sent by the first one ──────────────▶ answered
//                    └──▶ handed to the one with the most time, sealed ──▶ answered
//
// Requests that only end something are not gathered with others: a store need not wait for its disk
// to answer them, and shall not have to because of their company.
class Batcher {
 public:
  Batcher(LockStore& store, Clock& clock, const Capabilities& can)
      : store_(store), clock_(clock), direct_(!can.needs_batching), parallel_(can.parallel) {}

  // Blocks until the reply is there or the store gave up, at most until the deadline. The request
  // travels with others and is back, as it was, when this returns. `sent` is now; if the request
  // has to gather first, it becomes the time when it went.
  Result<Reply> submit(Request& request, Deadline deadline, Instant& sent);

 private:
  static constexpr std::size_t kMaxBatch = 512;

  struct Place {
    Request* request;  // the caller's; null if it left before the batch was sealed
    Deadline deadline;
    std::size_t index = 0;  // among the requests that were sent
  };

  // Shared by its callers: the last of them to leave may be the one that sends.
  struct Batch {
    // Under the mutex of the batcher:
    std::vector<Place> places;
    bool may_go = false;
    bool led = true;         // the first caller is still there, and waits to send it
    bool sealed = false;     // nobody comes or leaves any more, the requests are the batch's own
    std::size_t sender = 0;  // the place of whom it was handed to; 0: nobody
    std::condition_variable go;

    std::mutex packing;  // held while the requests are taken from the callers
    std::vector<Request> requests;
    Instant sent;

    std::optional<Result<std::vector<Reply>>> replies;  // there once it is answered
    FutexValue state;
  };
  static constexpr std::uint32_t kHanded = 1;
  static constexpr std::uint32_t kAnswered = 2;

  struct Lane {
    std::deque<std::shared_ptr<Batch>> gathering;  // all but the last are full
  };
  using Lock = std::unique_lock<std::mutex>;

  Result<Reply> send_alone(const Request& request, Deadline deadline);
  Result<Reply> lead(Lane& lane, Batch& batch, Lock lock, Instant& sent);
  Result<Reply> follow(Lane& lane, Batch& batch, std::size_t place, Deadline deadline,
                       Instant& sent);
  Result<Reply> send(Lane& lane, Batch& batch, std::size_t place, Lock lock, Instant& sent);
  static Result<Reply> leave(Batch& batch, std::size_t place, Lock lock, Instant& sent);
  static Result<Reply> reply_in(Batch& batch, std::size_t place, Instant& sent);

  // Under the mutex:
  [[nodiscard]] static bool has_time(const Batch& batch, Instant now);
  static bool hand_over(Lane& lane, Batch& batch);
  static void take_out(Lane& lane, const Batch& batch);
  void let_next_go(Lane& lane);
  void give_slot(Lane& lane);

  LockStore& store_;
  Clock& clock_;
  const bool direct_;
  const std::size_t parallel_;
  std::mutex mutex_;
  std::array<Lane, 2> lanes_;  // endings in the second
  std::size_t in_flight_ = 0;
};

}  // namespace baton::runtime
