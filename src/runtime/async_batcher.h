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

// Sends the requests of callers that do not wait, in batches, on threads of its own: as many as the
// store works on at once, started when they are needed. While all are on their way, what comes
// gathers, and goes as one, the oldest first.
//
// What callbacks send gathers apart, by the thread that calls them, until all of their batch have
// been called, for a moment at most. Then that thread sends it, whatever the others do, so that the
// store has work while other callbacks run; only if others are idle they get their share of it.
//
// Like the Batcher, it gathers requests that only end something apart from the others.
class AsyncBatcher {
 public:
  // The request again, what the store said, both to be taken, and when it was sent. Called exactly
  // once, on a thread of the async_batcher.
  using Then = std::function<void(Request& request, Result<Reply>& reply, Instant sent)>;

  AsyncBatcher(LockStore& store, Clock& clock, const Capabilities& can)
      : store_(store), clock_(clock), apply_limit_(can.apply_limit), most_(can.parallel) {}
  ~AsyncBatcher() { stop(); }
  AsyncBatcher(const AsyncBatcher&) = delete;
  AsyncBatcher& operator=(const AsyncBatcher&) = delete;

  void send(Request request, Then then);

  // Requests that were handed in and are not on their way yet.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool on_own_thread() const;

  // What gathered to end something is still sent, once; whoever asks for something is told that the
  // client was closed.
  void stop();

 private:
  static constexpr std::size_t kMaxBatch = 512;

  using Thread = const void*;
  struct Batch {
    bool ends = false;          // something, and begins nothing
    Thread gatherer = nullptr;  // the thread whose callbacks still add to it
    std::vector<Request> requests;
    std::vector<Then> thens;

    Batch split_off(std::size_t count);
  };

  void work();
  static void hand_out(Batch& batch, Result<std::vector<Reply>>& replies, Instant sent);

  // Under the mutex:
  Batch& place_for(const Request& request, Thread gatherer);
  void call_another();
  [[nodiscard]] std::size_t ready() const;  // batches that nobody adds to any more
  [[nodiscard]] bool is_worth_it() const;   // to send one of them now
  Batch next();
  void close(Thread gatherer);

  LockStore& store_;
  Clock& clock_;
  const Millis apply_limit_;
  const std::size_t most_;  // threads

  mutable std::mutex mutex_;
  std::condition_variable gathered_;
  std::deque<Batch> batches_;    // the oldest first
  std::size_t idle_ = 0;         // threads that wait for something to gather
  std::size_t handing_out_ = 0;  // requests whose callbacks are being called
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace baton::runtime
