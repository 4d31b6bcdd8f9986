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

// Combines the requests of many threads into few calls of the store. It has no thread of its own:
// a lone caller sends its request at once. While Capabilities::parallel batches are in flight,
// other callers gather in a batch, and one of them sends it when an earlier batch is answered.
//
// Every caller returns by its own deadline. A caller whose time is up leaves its batch: before the
// batch is sent it takes its request back, which then was never sent; after that it returns without
// a reply. The sending caller is inside the store until the reply arrives, so the call has that
// caller's deadline. The sender is the first caller of the batch, unless another caller has more
// than twice its time left.
//
//   gathering ──▶ may go ──▶ sealed: sent by the first caller ──────────────▶ answered
//                    └──▶ handed to the caller with the most time, sealed ──▶ answered
//
// Requests that only end something have batches of their own: see ending.h.
class Batcher {
 public:
  Batcher(LockStore& store, Clock& clock, const Capabilities& can)
      : store_(store), clock_(clock), direct_(!can.needs_batching), parallel_(can.parallel) {}

  // Blocks until the reply arrives or the store gives up, at most until the deadline. The request
  // is moved into a batch and moved back before this returns. `sent` is the current time; if the
  // request has to wait in a batch, it is set to the time when the batch was sent.
  Result<Reply> submit(Request& request, Deadline deadline, Instant& sent);

 private:
  static constexpr std::size_t kMaxBatch = 512;

  struct Place {
    Request* request;  // the caller's; null if it left before the batch was sealed
    Deadline deadline;
    std::size_t index = 0;  // among the requests that were sent
  };

  // Owned by all its callers together: the sender may be the last of them to leave.
  struct Batch {
    // Under the mutex of the batcher:
    std::vector<Place> places;
    bool may_go = false;
    bool led = true;         // the first caller still waits to send it
    bool sealed = false;     // no caller joins or leaves any more; the batch owns the requests
    std::size_t sender = 0;  // the place of the caller it was handed to; 0: not handed over
    std::condition_variable go;

    std::mutex packing;  // held while the requests are taken from the callers
    std::vector<Request> requests;
    Instant sent;

    std::optional<Result<std::vector<Reply>>> replies;  // set when it is answered
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
  std::array<Lane, 2> lanes_;  // requests that only end something use the second
  std::size_t in_flight_ = 0;
};

}  // namespace baton::runtime
