#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "baton/store.h"

namespace baton::test {

// Knows how many calls the store has not answered yet, so that a test can let its clock stand still
// meanwhile: a server that is slow for a second must not outlast a TTL of the test's time.
class PendingCallsStore final : public LockStore {
 public:
  explicit PendingCallsStore(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] int pending() const { return pending_; }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    const Pending one(pending_);
    return inner_->apply(batch, deadline);
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    const Pending one(pending_);
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  class Pending {
   public:
    explicit Pending(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Pending() { --count_; }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    std::atomic<int>& count_;
  };

  std::shared_ptr<LockStore> inner_;
  std::atomic<int> pending_{0};
};

}  // namespace baton::test
