#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "baton/store.h"

namespace baton::test {

// A store behind a bad line: a test says how bad.
class FlakyStore final : public LockStore {
 public:
  explicit FlakyStore(std::shared_ptr<LockStore> inner, Clock& clock = system_clock())
      : inner_(std::move(inner)), clock_(clock) {}

  // `busy`: the store is there, but cannot touch these names for the moment. `holds`: a request
  // gets nowhere until the line is another. `hangs`: the same, but it is given up at its deadline,
  // as every store does. A client cannot tell a lost request from a lost reply.
  enum class Line { good, refuses, loses_requests, loses_replies, busy, holds, hangs };
  void set(Line line) {
    {
      const std::lock_guard lock(mutex_);
      line_ = line;
    }
    changed_.notify_all();
  }
  void drop_wakeups() { drop_wakeups_ = true; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    ++calls_;
    const Line line = line_after_hold(deadline);
    if (line == Line::hangs) return lost();
    if (line == Line::refuses) {
      return Error{.code = Code::unavailable, .message = "cut off", .retryable = true};
    }
    if (line == Line::busy) {
      std::vector<Reply> replies(batch.size());
      for (Reply& reply : replies) reply.outcome = Outcome::busy;
      return replies;
    }
    if (line == Line::loses_requests) return lost();
    auto replies = inner_->apply(batch, deadline);
    if (line == Line::loses_replies) return lost();
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    if (line_after_hold(deadline) == Line::hangs) return lost();
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return drop_wakeups_ ? std::make_unique<Watch>() : inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  static Error lost() {
    return {.code = Code::unavailable,
            .message = "cut off after sending",
            .retryable = true,
            .in_doubt = true};
  }
  Line line_after_hold(Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (line_ == Line::holds || (line_ == Line::hangs && clock_.now() < deadline)) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    return line_;
  }

  std::shared_ptr<LockStore> inner_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Line line_ = Line::good;
  std::atomic<std::uint64_t> calls_{0};
  bool drop_wakeups_ = false;
};

}  // namespace baton::test
