#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

#include "core/lock_table.h"
#include "policy/apply_policy.h"
#include "store/memory/memory_store.h"

namespace baton {
namespace {

using namespace std::chrono_literals;

// Waiting takes no time at all: it moves the clock, and the store's with it.
class TestClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  void wait(std::unique_lock<std::mutex>& /*lock*/, std::condition_variable& /*signal*/,
            Instant until) override {
    now_ = std::max(now_, until);
  }
  [[nodiscard]] core::StoreTime store_time() const {
    return std::chrono::floor<core::StoreTime>(now_.time_since_epoch());
  }

 private:
  Instant now_{1h};
};

class PolicyApply : public ::testing::Test {
 protected:
  Result<policy::AppliedPolicy> apply(const std::string& yaml) {
    return policy::apply_policy(*store_, parse_policy(yaml).value(), options_);
  }

  Reply send(Request request) {
    auto replies = store_->apply({&request, 1}, clock_.now() + 1s);
    return std::move(replies.value().front());
  }

  // A client that started with `version`.
  Reply acquire(const std::string& key, std::int64_t version, Millis ttl = 30s,
                GrantId grant = new_grant_id()) {
    Request ask;
    ask.verb = Verb::acquire;
    ask.grant = grant;
    ask.targets = {{key, Mode::X}};
    ask.ttl = ttl;
    ask.owner = "worker";
    ask.schema_version = version;
    return send(ask);
  }

  Policy stored() { return policy::read_policy(*store_, clock_.now() + 1s).value(); }

  TestClock clock_;
  std::unique_ptr<LockStore> store_ =
      store::make_memory_store_at([this] { return clock_.store_time(); });
  policy::ApplyPolicyOptions options_{.owner = "test", .timeout = 60s, .clock = &clock_};
  std::stop_source stop_;
};

TEST_F(PolicyApply, a_store_without_a_policy_has_version_0) { EXPECT_EQ(stored(), Policy{}); }

TEST_F(PolicyApply, rules_alone_take_one_step) {
  const auto applied = apply("subjects: {audit: {modes: [exclusive]}}");
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->version, 1);
  EXPECT_TRUE(applied->drained.empty());
  EXPECT_EQ(stored().version, 1);
  EXPECT_EQ(acquire("DEFAULT:audit", 1).outcome, Outcome::granted);
}

TEST_F(PolicyApply, a_client_with_another_version_is_denied) {
  ASSERT_TRUE(apply("subjects: {audit: {}}"));
  EXPECT_EQ(acquire("DEFAULT:audit", 0).outcome, Outcome::denied);
}

TEST_F(PolicyApply, new_rules_leave_running_clients_alone) {
  ASSERT_TRUE(apply("subjects: {audit: {modes: [exclusive]}}"));
  const auto applied = apply("subjects: {audit: {modes: [shared]}}");
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->version, 1);
  EXPECT_EQ(stored().subjects.at("audit").rules.modes, std::vector{kShared});
  EXPECT_EQ(acquire("DEFAULT:audit", 1).outcome, Outcome::granted);
}

TEST_F(PolicyApply, the_same_again_changes_nothing) {
  ASSERT_TRUE(apply("subjects: {job: {scope: predicate}}"));
  const auto again = apply("subjects: {job: {scope: predicate}}");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->unchanged);
  EXPECT_EQ(again->version, 2);
  EXPECT_EQ(stored().version, 2);
}

TEST_F(PolicyApply, changed_conflicts_wait_for_the_holders_while_nobody_acquires) {
  ASSERT_EQ(acquire("DEFAULT:job:1", 0, 10s).outcome, Outcome::granted);
  int looks = 0;
  options_.progress = [&](const policy::DrainProgress& progress) {
    ++looks;
    EXPECT_EQ(progress.in_the_way.size(), 1U);
    EXPECT_TRUE(stored().draining);
    EXPECT_EQ(acquire("DEFAULT:job:2", 0).outcome, Outcome::denied);
    EXPECT_EQ(acquire("DEFAULT:other", 0).outcome, Outcome::denied);
  };
  const auto applied = apply("subjects: {job: {scope: predicate}}");
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_GT(looks, 10);
  EXPECT_EQ(applied->version, 2);
  EXPECT_EQ(applied->drained, std::vector<std::string>{"job"});
  EXPECT_FALSE(stored().draining);
  EXPECT_EQ(acquire("DEFAULT:job:1::holding", 2).outcome, Outcome::granted);
}

TEST_F(PolicyApply, holders_of_other_subjects_are_not_waited_for) {
  const auto grant = new_grant_id();
  ASSERT_EQ(acquire("DEFAULT:other", 0, 10s, grant).outcome, Outcome::granted);
  ASSERT_TRUE(apply("subjects: {job: {scope: predicate}}"));
  Request renew;
  renew.verb = Verb::renew;
  renew.grant = grant;
  renew.targets = {{"DEFAULT:other", Mode::X}};
  EXPECT_EQ(send(renew).outcome, Outcome::granted)
      << "it goes on under the version it started with";
}

TEST_F(PolicyApply, when_it_takes_too_long_the_old_policy_is_back_under_its_old_version) {
  ASSERT_TRUE(apply("subjects: {audit: {}}"));
  ASSERT_EQ(acquire("DEFAULT:job:1", 1, 24h).outcome, Outcome::granted);
  const auto applied = apply("subjects: {audit: {}, job: {scope: predicate}}");
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, Code::timed_out);
  EXPECT_NE(applied.error().message.find("job/1 held by worker"), std::string::npos)
      << applied.error().message;
  EXPECT_EQ(stored().version, 1);
  EXPECT_FALSE(stored().draining);
  EXPECT_EQ(acquire("DEFAULT:job:2", 1).outcome, Outcome::granted);
}

TEST_F(PolicyApply, a_first_policy_that_takes_too_long_leaves_none) {
  ASSERT_EQ(acquire("DEFAULT:job:1", 0, 24h).outcome, Outcome::granted);
  ASSERT_FALSE(apply("subjects: {job: {scope: predicate}}"));
  EXPECT_EQ(stored(), Policy{});
}

TEST_F(PolicyApply, stopping_it_puts_the_old_policy_back) {
  options_.stop = stop_.get_token();
  options_.progress = [&](const policy::DrainProgress&) { stop_.request_stop(); };
  ASSERT_EQ(acquire("DEFAULT:job:1", 0, 24h).outcome, Outcome::granted);
  const auto applied = apply("subjects: {job: {scope: predicate}}");
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, Code::cancelled);
  EXPECT_EQ(stored(), Policy{});
}

TEST_F(PolicyApply, two_changes_at_once_exclude_each_other) {
  ASSERT_EQ(acquire("DEFAULT:job:1", 0, 10s).outcome, Outcome::granted);
  bool tried = false;
  options_.progress = [&](const policy::DrainProgress&) {
    if (tried) return;
    tried = true;
    policy::ApplyPolicyOptions other{.owner = "second", .clock = &clock_};
    const auto second = policy::apply_policy(*store_, {}, other);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::busy);
    EXPECT_NE(second.error().message.find("test"), std::string::npos) << "says who";
  };
  EXPECT_TRUE(apply("subjects: {job: {scope: predicate}}"));
  EXPECT_TRUE(tried);
}

TEST_F(PolicyApply, a_drain_longer_than_its_own_ttl_keeps_the_lock) {
  options_.timeout = 10min;
  ASSERT_EQ(acquire("DEFAULT:job:1", 0, 5min).outcome, Outcome::granted);
  const auto applied = apply("subjects: {job: {scope: predicate}}");
  ASSERT_TRUE(applied) << applied.error().message;
}

// Shows somebody that was let in before the drain began as late as a store may.
class LateStore final : public LockStore {
 public:
  LateStore(LockStore& store, Clock& clock) : store_(store), clock_(clock) {}

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    if (!began && batch[0].change.text) began = clock_.now();
    return store_.apply(batch, deadline);
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    auto page = store_.find(query, deadline);
    const auto since = clock_.now() - began.value();
    const Millis limit = capabilities().apply_limit;
    if (since >= limit && since < limit + 3s) page->items.push_back(somebody());
    return page;
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return store_.watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return store_.capabilities(); }

  std::optional<Instant> began;  // to drain

 private:
  static LockInfo somebody() {
    LockInfo info;
    info.key = "DEFAULT:job:1";
    info.holders.emplace_back();
    return info;
  }

  LockStore& store_;
  Clock& clock_;
};

TEST_F(PolicyApply, a_drain_waits_for_acquires_that_were_under_way_when_it_began) {
  LateStore late(*store_, clock_);
  const auto applied = policy::apply_policy(
      late, parse_policy("subjects: {job: {scope: predicate}}").value(), options_);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_GE(clock_.now() - late.began.value(), late.capabilities().apply_limit + 3s);
}

TEST_F(PolicyApply, the_time_for_acquires_under_way_does_not_count_as_the_holders) {
  options_.timeout = 0s;
  const auto applied = apply("subjects: {job: {scope: predicate}}");
  EXPECT_TRUE(applied) << applied.error().message;
}

TEST_F(PolicyApply, a_change_that_died_while_draining_can_be_done_again) {
  Request died;
  died.verb = Verb::acquire;
  died.grant = new_grant_id();
  died.targets = {{std::string(core::kSchemaKey), Mode::X}};
  died.ttl = 1s;
  Policy draining;
  draining.version = 1;
  draining.draining = true;
  died.change = {.ordinal = 1, .text = to_stored(draining)};
  ASSERT_EQ(send(died).outcome, Outcome::granted);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable signal;
  clock_.wait(lock, signal, clock_.now() + 2s);

  const auto applied = apply("subjects: {job: {scope: predicate}}");
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->version, 2);
  EXPECT_FALSE(stored().draining);
}

TEST_F(PolicyApply, a_policy_nobody_can_read_is_replaced_only_on_demand_and_after_all_locks) {
  Request damage;
  damage.verb = Verb::acquire;
  damage.grant = new_grant_id();
  damage.targets = {{std::string(core::kSchemaKey), Mode::X}};
  damage.ttl = 1s;
  damage.change = {.ordinal = 4, .text = "damaged"};
  ASSERT_EQ(send(damage).outcome, Outcome::granted);
  damage.verb = Verb::release;
  damage.change = {};
  ASSERT_EQ(send(damage).outcome, Outcome::done);
  ASSERT_EQ(acquire("DEFAULT:anything", 4, 10s).outcome, Outcome::granted);

  const auto refused = apply("subjects: {}");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_store);
  options_.replace = true;
  const Instant before = clock_.now();
  const auto applied = apply("subjects: {}");
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->version, 6);
  EXPECT_GE(clock_.now() - before, 10s);
}

}  // namespace
}  // namespace baton
