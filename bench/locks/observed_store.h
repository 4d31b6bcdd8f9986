#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "baton/store.h"

namespace baton::bench {

// Passes everything on to a store, and adds up what its renewals take.
class ObservedStore final : public LockStore {
 public:
  struct Renewals {
    std::size_t leases = 0;
    std::size_t batches = 0;
    std::size_t failed_batches = 0;
    double seconds = 0;
  };

  explicit ObservedStore(std::shared_ptr<LockStore> store) : store_(std::move(store)) {}

  [[nodiscard]] Renewals renewals() const {
    return {leases_, batches_, failed_, static_cast<double>(nanoseconds_) * 1e-9};
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    const Instant start = BootClock::now();
    auto replies = store_->apply(batch, deadline);
    // The keeper's batches hold nothing but renewals.
    if (!batch.empty() && batch[0].verb == Verb::renew) {
      nanoseconds_ += (BootClock::now() - start).count();
      leases_ += replies ? batch.size() : 0;
      failed_ += replies ? 0 : 1;
      ++batches_;
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return store_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return store_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return store_->capabilities(); }

 private:
  const std::shared_ptr<LockStore> store_;
  std::atomic<std::size_t> leases_{0};
  std::atomic<std::size_t> batches_{0};
  std::atomic<std::size_t> failed_{0};
  std::atomic<std::int64_t> nanoseconds_{0};
};

}  // namespace baton::bench
