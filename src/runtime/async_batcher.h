#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "baton/clock.h"
#include "baton/store.h"

namespace baton::runtime {

// Sends the requests of callers that do not block, in batches, on threads of its own. There are as
// many threads as the store takes batches at once (Capabilities::parallel); each is started when it
// is first needed. While all threads wait for the store, new requests gather into one batch. The
// oldest batch is sent first.
//
// Requests that are sent from a callback gather separately, one batch per calling thread, until
// every callback of that thread's batch has run, or for kMoment at most. Then this thread sends
// them itself, so that the store has work while other threads still run callbacks. If other threads
// are idle, the batch is shared with them. Other callers gather by gather().
//
// Like the Batcher, it keeps requests that only end something apart from the others.
class AsyncBatcher {
 public:
  // Gets the request and its reply, both of which it may move from, and when the request was sent.
  // Called exactly once, on a thread of the AsyncBatcher; inside send() only if it is stopped, or
  // if not even one thread can be started.
  using Then = std::function<void(Request& request, Result<Reply>& reply, Instant sent)>;

  AsyncBatcher(LockStore& store, Clock& clock, const Capabilities& can)
      : store_(store), clock_(clock), apply_limit_(can.apply_limit), most_(can.parallel) {}
  ~AsyncBatcher() { stop(); }
  AsyncBatcher(const AsyncBatcher&) = delete;
  AsyncBatcher& operator=(const AsyncBatcher&) = delete;

  void send(Request request, Then then);

  // Calls `ask`; what it sends on this thread goes together, when it returns.
  void gather(const std::function<void()>& ask);

  // The number of requests that were submitted and are not sent yet.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool on_own_thread() const;

  // Requests that only end something are still sent, once. All others are answered `cancelled`.
  void stop();

 private:
  static constexpr std::size_t kMaxBatch = 512;

  using Thread = const void*;
  struct Batch {
    bool ends = false;          // its requests only end something: see ending.h
    Thread gatherer = nullptr;  // the thread whose callbacks still add to it, if any
    std::vector<Request> requests;
    std::vector<Then> thens;

    Batch split_off(std::size_t count);
  };

  void work();
  static void hand_out(Batch& batch, Result<std::vector<Reply>>& replies, Instant sent);

  // Under the mutex:
  [[nodiscard]] Thread gatherer() const;  // this thread, if what it sends gathers separately
  Batch& place_for(const Request& request);
  void call_another();
  [[nodiscard]] std::size_t ready() const;  // how many batches are complete
  [[nodiscard]] bool is_worth_it() const;   // whether to send one of them now
  Batch next();
  void close(Thread gatherer);

  LockStore& store_;
  Clock& clock_;
  const Millis apply_limit_;
  const std::size_t most_;  // the most threads

  mutable std::mutex mutex_;
  std::condition_variable gathered_;
  std::deque<Batch> batches_;    // the oldest first
  std::size_t idle_ = 0;         // threads that wait for requests
  std::size_t handing_out_ = 0;  // requests whose callbacks are being called
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace baton::runtime
