#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "baton/clock.h"
#include "baton/store.h"
#include "core/backoff.h"

namespace baton::runtime {

// A granted acquire: the reply, and when the request was sent.
struct WaitResult {
  Reply reply;
  Instant sent;
  bool waited = false;
  std::optional<std::chrono::nanoseconds> handover;  // time from the wake-up to the grant
};

// All waiting acquires of this client, on one thread.
//
// Each waiter has a place in the store's queue. The hub claims for a waiter when the waiter is
// woken, and for all waiters at least every second, in one batch: a lost wake-up or a dead holder
// costs a second, never the lock. The hub also undoes, in the background, requests that an
// unreachable store left in doubt.
class WaitHub final : public WakeSink {
 public:
  using Then = std::function<void(Result<WaitResult>)>;
  using OnStray = std::function<void(GrantId)>;

  // `stray` is told of wake-ups for grants that do not wait here.
  WaitHub(LockStore& store, Clock& clock, OnStray stray);
  ~WaitHub() override;

  // `acquire` has queue_ttl set. With `queued`, it already has a place in the store's queue. `from`
  // is when to ask first. `so_far` is the error to report if nothing changes until the deadline; if
  // it is in doubt, the acquire is undone when it is not granted. `then` is called exactly once, on
  // the hub's thread, by the deadline, or when a store call that was in progress at the deadline
  // returns.
  void wait(Request acquire, Deadline deadline, Instant from, bool queued, std::stop_token stop,
            Error so_far, Then then);

  // The caller does not wait any more. A grant that comes all the same is undone. Returns whether
  // something may have been written: a grant, which is undone, or a note, which stays.
  bool abandon(GrantId grant);

  // Sends a release, a cancel or a convert to a weaker mode, again until the store has answered or
  // `until` has passed. A release whose successor no longer waits is sent again without one. `then`
  // is called with the answer, if there is one, on the hub's thread.
  void undo(Request request, Instant from, Instant until, Then then = nullptr);

  // Calls `what` soon, on the hub's thread.
  void call(std::function<void()> what);

  void wake(std::span<const GrantId> grants) override;

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool on_own_thread() const;
  void stop();

 private:
  static constexpr std::size_t kMaxBatch = 1000;
  static constexpr std::size_t kMaxRemembered = 4096;

  struct Waiting {
    Request acquire;
    Deadline deadline;
    Then then;
    bool queued = false;
    bool abandoned = false;
    std::stop_token stop;
    std::unique_ptr<std::stop_callback<std::function<void()>>> on_stop;
    bool in_doubt = false;  // a request may have taken effect, or may still do so
    bool noted = false;     // a request that was in doubt may have written the note
    bool asking = false;    // a request is in flight
    Instant ask_at;
    Instant along_at = Instant::max();  // from then on it joins a batch that is sent anyway
    Instant refresh_at;
    bool asked = false;  // the store has told it to wait
    std::optional<Instant> woken_at;
    core::Backoff backoff{Millis(50), Millis(1000)};
    Error last;  // why it does not have the lock yet

    // No later reply can show that the note was not written: the grant may have expired since.
    void doubt() {
      in_doubt = true;
      noted = noted || !acquire.change.empty();
    }
    // The error for a caller that does not get the lock.
    [[nodiscard]] Error end(Error error) const {
      error.in_doubt = error.in_doubt || in_doubt || noted;
      return error;
    }
    void wake(Instant now) {
      ask_at = Instant::min();
      if (!woken_at) woken_at = now;
    }
    [[nodiscard]] std::optional<std::chrono::nanoseconds> since_woken(Instant now) const {
      if (!woken_at) return std::nullopt;
      return now - *woken_at;
    }
  };
  struct Undo {
    Request request;
    Instant at;
    Instant until;
    Then then = nullptr;
    core::Backoff backoff{Millis(50), Millis(1000)};
  };
  using Finished = std::vector<std::pair<Then, Result<WaitResult>>>;

  void loop(const std::stop_token& stop);
  void close();
  Instant gather(Instant now, std::vector<Request>& batch, std::vector<Undo>& undoing,
                 Finished& finished);
  [[nodiscard]] bool somebody_asks(Instant now) const;
  Request next_request(Waiting& waiting, Instant now) const;
  void send(const std::vector<Request>& batch, std::vector<Undo>& undoing, Finished& finished);
  void process_reply(Waiting& waiting, Reply& reply, Instant sent, Instant now, Finished& finished);
  void give_up(const Waiting& waiting, Instant from);
  void undone(Undo undo, Reply& reply, Instant sent, Instant now, Finished& finished);
  void put_off(Undo undo, Instant now);
  void failed(const std::vector<Request>& batch, const Error& error, Instant sent);
  Millis jitter(Millis time);

  LockStore& store_;
  Clock& clock_;
  const OnStray stray_;
  const Millis apply_limit_;
  mutable std::mutex mutex_;
  std::condition_variable signal_;
  std::atomic<bool> signalled_ = false;
  std::unordered_map<GrantId, Waiting> waiting_;
  std::vector<Undo> undo_;
  std::vector<std::function<void()>> calls_;
  bool closed_ = false;                // the thread runs no more calls
  std::unordered_set<GrantId> early_;  // woken before wait() was called for them
  std::minstd_rand random_{std::random_device{}()};
  std::jthread thread_;
};

// How long to wait before asking again without a wake-up: until something may have expired, a
// second at most, and at most half of the time in which a promotion must be claimed, so that
// waiters make progress even if every wake-up is lost.
Millis ask_pause(const Reply& reply, const Request& acquire);

// The error that a caller gets for an outcome other than granted.
Error error_of(const Reply& reply, const Request& request);

}  // namespace baton::runtime
