// What the Keeper promises when replies come late and out of order, and when much is due at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "baton/locks.h"
#include "conformance/manual_clock.h"
#include "store/memory/memory_store.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

// A memory store whose replies a test holds back, one kind of request at a time, and which notes
// who was renewed together.
class LateStore final : public LockStore {
 public:
  explicit LateStore(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}

  // What matches gets its reply only when it is let go.
  struct Kind {
    Verb verb;
    std::string key;
    bool with_note = false;
  };
  void hold(Kind kind) {
    const std::lock_guard lock(mutex_);
    held_ = std::move(kind);
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_.reset();
    changed_.notify_all();
  }
  [[nodiscard]] bool holds_one() const { return waiting_ > 0; }
  void refuse_renewals() { refuses_ = true; }
  WakeSink& sink() { return *sink_; }

  using Keys = std::vector<std::string>;
  std::vector<Keys> renewals() {
    const std::lock_guard lock(mutex_);
    return renewals_;
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    const bool renews = batch.front().verb == Verb::renew && batch.front().change.empty();
    if (renews && refuses_) {
      return Error{.code = Code::unavailable, .message = "cut off", .retryable = true};
    }
    auto replies = inner_->apply(batch, deadline);
    std::unique_lock lock(mutex_);
    if (renews) {
      renewals_.emplace_back();
      for (const Request& request : batch) renewals_.back().push_back(request.targets[0].key);
    }
    if (!is_held(batch.front())) return replies;
    ++waiting_;
    changed_.wait(lock, [&] { return !is_held(batch.front()); });
    --waiting_;
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string&, WakeSink& sink) override {
    sink_ = &sink;
    return std::make_unique<Watch>();
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  [[nodiscard]] bool is_held(const Request& request) const {
    return held_ && held_->verb == request.verb && held_->key == request.targets[0].key &&
           held_->with_note != request.change.empty();
  }

  std::shared_ptr<LockStore> inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Kind> held_;
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> refuses_ = false;
  std::vector<Keys> renewals_;
  WakeSink* sink_ = nullptr;
};

class KeeperTest : public ::testing::Test {
 protected:
  static LockName named(const std::string& subject) { return {.subject = subject}; }
  Lease take(const std::string& subject, Millis ttl) {
    return locks.acquire(named(subject), {.ttl = ttl}).value();
  }
  static std::string key(const std::string& subject) { return "DEFAULT:" + subject; }

  // The renewer is on its way with `stuck` alone, and does not come back before let_go().
  Lease hold_up_renewer() {
    Lease stuck = take("stuck", 60s);
    store->hold({Verb::renew, key("stuck")});
    time->advance(20s);
    EXPECT_TRUE(poll_until([&] { return store->holds_one(); }));
    return stuck;
  }
  // What it renews next.
  LateStore::Keys let_renewer_go() {
    const std::size_t before = store->renewals().size();
    store->let_go();
    EXPECT_TRUE(poll_until([&] { return store->renewals().size() > before; }));
    return store->renewals().at(before);
  }

  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  std::shared_ptr<LateStore> store =
      std::make_shared<LateStore>(store::make_memory_store_at([this] { return time->now(); }));
  LockClient locks = LockClient::make(store, {.owner = "a", .clock = &clock}).value();
};

TEST_F(KeeperTest, a_lease_whose_grant_came_late_is_still_lost_in_time) {
  store->refuse_renewals();
  store->hold({Verb::acquire, key("slow")});
  auto asking = std::async(std::launch::async, [&] { return take("slow", 1s); });
  ASSERT_TRUE(poll_until([&] { return store->holds_one(); }));
  time->advance(300ms);
  const Lease quick = take("quick", 1s);
  time->advance(100ms);
  store->let_go();
  const Lease slow = asking.get();
  ASSERT_TRUE(slow.valid());
  time->advance(350ms);
  // The store may give it away 250 ms from now, and no time passes here.
  EXPECT_TRUE(poll_until([&] { return slow.lost().stop_requested(); }));
  EXPECT_TRUE(quick.valid());
  EXPECT_FALSE(quick.lost().stop_requested());
}

TEST_F(KeeperTest, an_answer_that_an_earlier_request_gets_late_takes_no_time_away) {
  Lease lease = take("report", 3s);
  time->advance(500ms);
  store->hold({.verb = Verb::renew, .key = key("report"), .with_note = true});
  auto noting = std::async(std::launch::async, [&] { return lease.set_note({.text = "half"}); });
  ASSERT_TRUE(poll_until([&] { return store->holds_one(); }));
  time->advance(500ms);
  ASSERT_TRUE(poll_until([&] { return lease.remaining() == 2700ms; })) << "not renewed";
  store->let_go();
  ASSERT_TRUE(noting.get());
  // By the answer it would be due now; by the renewal, half a second later.
  const Lease other = take("other", 1500ms);
  time->advance(500ms);
  ASSERT_TRUE(poll_until([&] { return other.remaining() == 1250ms; })) << "not renewed";
  EXPECT_EQ(store->renewals().back(), LateStore::Keys{key("other")});
}

TEST_F(KeeperTest, whatever_its_ttl_the_lease_that_ends_first_is_renewed_first) {
  const Lease stuck = hold_up_renewer();
  const Lease urgent = take("urgent", 3s);
  time->advance(1500ms);
  std::vector<Lease> others;
  for (int i = 0; i < 1000; ++i) others.push_back(take("other" + std::to_string(i), 2s));
  time->advance(700ms);
  const auto first = let_renewer_go();
  EXPECT_EQ(first.size(), 1000U);
  EXPECT_EQ(first.front(), key("urgent"));
}

TEST_F(KeeperTest, a_lease_that_is_poked_is_renewed_along_with_those_that_are_due) {
  const Lease stuck = hold_up_renewer();
  const Lease due = take("due", 3s);
  const Lease poked = take("poked", 60s);
  time->advance(1s);
  for (int i = 0; i < 2; ++i) store->sink().wake(std::vector<GrantId>{poked.grant()});
  auto together = let_renewer_go();
  std::sort(together.begin(), together.end());
  EXPECT_EQ(together, (LateStore::Keys{key("due"), key("poked")}));
}

TEST_F(KeeperTest, many_that_are_poked_are_renewed_in_batches_too) {
  const Lease stuck = hold_up_renewer();
  std::vector<Lease> leases;
  std::vector<GrantId> grants;
  for (int i = 0; i < 1500; ++i) {
    leases.push_back(take("job" + std::to_string(i), 60s));
    grants.push_back(leases.back().grant());
  }
  store->sink().wake(grants);
  EXPECT_EQ(let_renewer_go().size(), 1000U);
  EXPECT_TRUE(poll_until([&] { return store->renewals().size() == 3; }));
  EXPECT_EQ(store->renewals().back().size(), 500U);
}

TEST_F(KeeperTest, who_is_told_of_a_loss_holds_up_no_renewal) {
  const Lease broken = take("broken", 3s);
  time->advance(1ms);
  const Lease kept = take("kept", 3s);
  std::latch told(1);
  std::latch done(1);
  const std::stop_callback slow(broken.lost(), [&] {
    told.count_down();
    done.wait();
  });
  ASSERT_TRUE(locks.break_lock(named("broken"), {.reason = "test"}));
  time->advance(1s);
  told.wait();
  EXPECT_TRUE(poll_until([&] { return kept.remaining() == 2700ms; })) << "not renewed";
  EXPECT_EQ(store->renewals().size(), 1U);
  done.count_down();
}

}  // namespace
}  // namespace baton::test
