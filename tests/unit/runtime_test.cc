#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "baton/locks.h"
#include "baton/memory_store.h"
#include "baton/observe.h"
#include "runtime/batcher.h"

namespace baton {
namespace {

using namespace std::chrono_literals;

TEST(Observe, counts_and_describes_every_call_and_changes_none) {
  StoreCounters counters;
  std::vector<std::string> lines;
  auto store = observed(make_memory_store(), [&](const StoreCall& call) {
    counters.count(call);
    lines.push_back(describe(call));
  });
  auto locks = LockClient::make(store).value();
  {
    auto lease = locks.acquire({.subject = "job"});
    ASSERT_TRUE(lease);
    EXPECT_FALSE(locks.try_acquire({.subject = "job"}));
  }
  EXPECT_EQ(counters.requests(Verb::acquire, Outcome::granted), 1U);
  EXPECT_EQ(counters.requests(Verb::acquire, Outcome::busy), 1U);
  EXPECT_EQ(counters.requests(Verb::release, Outcome::done), 1U);
  EXPECT_EQ(counters.failed_calls(), 0U);
  ASSERT_GE(lines.size(), 2U);
  EXPECT_NE(lines[1].find("acquire DEFAULT:job=X granted"), std::string::npos) << lines[1];
}

// Answers only when told to, so that callers gather.
class GatedStore final : public LockStore {
 public:
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline) override {
    ++calls;
    largest = std::max(largest.load(), batch.size());
    gate.wait();
    std::vector<Reply> replies(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      replies[i].outcome = Outcome::granted;
      replies[i].tokens = {batch[i].grant.low};
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query&, Deadline) override { return Page<LockInfo>{}; }
  std::unique_ptr<Watch> watch(const std::string&, WakeSink&) override { return nullptr; }
  [[nodiscard]] Capabilities capabilities() const override { return {}; }

  std::latch gate{1};
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> largest{0};
};

TEST(Batcher, callers_gather_while_a_batch_is_in_flight_and_each_gets_its_own_reply) {
  GatedStore store;
  runtime::Batcher batcher(store, {});
  std::atomic<int> right = 0;
  std::vector<std::jthread> callers;
  for (std::uint64_t i = 1; i <= 50; ++i) {
    callers.emplace_back([&, i] {
      Request request;
      request.grant = {0, i};
      const auto reply = batcher.submit(request, BootClock::now() + 30s);
      if (reply && reply->tokens.at(0) == i) ++right;
    });
  }
  // The first is in flight; the gate opens only when somebody is, so the others may gather.
  while (store.calls == 0) std::this_thread::yield();
  store.gate.count_down();
  callers.clear();
  EXPECT_EQ(right, 50);
  EXPECT_LE(store.calls, 50U);
}

}  // namespace
}  // namespace baton
