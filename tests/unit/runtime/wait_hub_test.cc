// What the hub makes of requests whose fate is unknown, and of those that it undoes.

#include "runtime/wait_hub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "conformance/manual_clock.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

const Error kInDoubt{.code = Code::unavailable,
                     .message = "cut off after sending",
                     .retryable = true,
                     .in_doubt = true};
const Error kRefused{.code = Code::unavailable, .message = "connection refused", .retryable = true};

// Answers as it is told, and remembers what it was asked.
class ToldStore final : public LockStore {
 public:
  using Answer = std::function<Result<Reply>(const Request&)>;
  void answer(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  std::vector<Request> asked(Verb verb) {
    const std::lock_guard lock(mutex_);
    std::vector<Request> those;
    std::copy_if(asked_.begin(), asked_.end(), std::back_inserter(those),
                 [&](const Request& request) { return request.verb == verb; });
    return those;
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline) override {
    const std::lock_guard lock(mutex_);
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      asked_.push_back(request);
      auto reply = answer_(request);
      if (!reply) return reply.error();
      replies.push_back(std::move(*reply));
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query&, Deadline) override { return Page<LockInfo>{}; }
  std::unique_ptr<Watch> watch(const std::string&, WakeSink&) override { return nullptr; }
  [[nodiscard]] Capabilities capabilities() const override { return {}; }

 private:
  std::mutex mutex_;
  Answer answer_ = [](const Request&) { return kRefused; };
  std::vector<Request> asked_;
};

Reply outcome(Outcome outcome) {
  Reply reply;
  reply.outcome = outcome;
  return reply;
}

class WaitHubTest : public ::testing::Test {
 protected:
  std::future<Result<runtime::WaitResult>> wait(const Error& so_far, Millis limit,
                                                Millis from = 0ms) {
    auto promise = std::make_shared<std::promise<Result<runtime::WaitResult>>>();
    hub.wait(acquire(1, "DEFAULT:report", Mode::X, kQueueTtl), clock.now() + limit,
             clock.now() + from, false, stop.get_token(), so_far,
             [promise](Result<runtime::WaitResult> won) { promise->set_value(std::move(won)); });
    return promise->get_future();
  }
  template <typename Condition>
  bool eventually(Condition condition) {
    return poll_until([&] {
      if (condition()) return true;
      time->advance(5ms);
      return false;
    });
  }
  Result<runtime::WaitResult> value_of(std::future<Result<runtime::WaitResult>>& future) {
    EXPECT_TRUE(eventually([&] { return future.wait_for(0s) == std::future_status::ready; }));
    return future.get();
  }
  bool cancelled_for_good() {
    return poll_until([&] { return !store.asked(Verb::cancel).empty(); }) &&
           store.asked(Verb::cancel).front().tombstone_ttl > 0ms;
  }

  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  ToldStore store;
  std::stop_source stop;
  runtime::WaitHub hub{store, clock, [](GrantId) {}};
};

TEST_F(WaitHubTest, what_was_in_doubt_stays_so_while_the_store_is_not_reached) {
  auto waiting = wait(kInDoubt, 3s);
  const auto ended = value_of(waiting);
  ASSERT_FALSE(ended);
  EXPECT_TRUE(ended.error().in_doubt);
  EXPECT_FALSE(store.asked(Verb::acquire).empty());
  EXPECT_TRUE(cancelled_for_good());
}

TEST_F(WaitHubTest, a_store_that_cannot_touch_the_name_settles_no_doubt) {
  store.answer([](const Request&) { return outcome(Outcome::busy); });
  auto waiting = wait(kInDoubt, 3s);
  EXPECT_FALSE(value_of(waiting));
  EXPECT_FALSE(store.asked(Verb::acquire).empty());
  EXPECT_TRUE(cancelled_for_good());
}

TEST_F(WaitHubTest, an_answer_settles_the_doubt) {
  store.answer([](const Request&) { return outcome(Outcome::lost); });
  auto waiting = wait(kInDoubt, 60s);
  ASSERT_TRUE(eventually([&] { return store.asked(Verb::acquire).size() == 2; }));
  stop.request_stop();
  EXPECT_EQ(value_of(waiting).error().code, Code::cancelled);
  hub.stop();
  EXPECT_TRUE(store.asked(Verb::cancel).empty());
}

TEST_F(WaitHubTest, a_wait_that_is_stopped_before_it_asks_again_is_undone) {
  auto waiting = wait(kInDoubt, 60s, 5s);
  stop.request_stop();
  EXPECT_EQ(value_of(waiting).error().code, Code::cancelled);
  EXPECT_TRUE(cancelled_for_good());
}

TEST_F(WaitHubTest, a_line_that_is_back_brings_no_repetition_forward) {
  auto waiting = wait(kInDoubt, 60s, 5s);
  hub.wake({});
  const auto waits = clock.waits();
  ASSERT_TRUE(poll_until([&] { return clock.waits() >= waits + 2; }));
  EXPECT_TRUE(store.asked(Verb::acquire).empty()) << "the first may still take effect";
  stop.request_stop();
  EXPECT_FALSE(value_of(waiting));
}

TEST_F(WaitHubTest, a_hub_that_closes_undoes_what_is_in_doubt) {
  store.answer([](const Request&) { return kInDoubt; });
  auto waiting = wait(kRefused, 60s);
  ASSERT_TRUE(poll_until([&] { return !store.asked(Verb::acquire).empty(); }));
  store.answer([](const Request&) { return kRefused; });
  ASSERT_TRUE(eventually([&] { return store.asked(Verb::acquire).size() >= 2; }));
  hub.stop();
  EXPECT_EQ(value_of(waiting).error().code, Code::cancelled);
  EXPECT_TRUE(cancelled_for_good());
}

// Nobody of that owner waits any more.
Result<Reply> denies_heirs(const Request& request) {
  return outcome(request.to.empty() ? Outcome::done : Outcome::denied);
}

TEST_F(WaitHubTest, a_release_whose_heir_has_gone_is_for_the_queue) {
  store.answer(denies_heirs);
  Request release = same_targets(Verb::release, acquire(1, "DEFAULT:report"));
  release.to = "heir";
  hub.undo(release, clock.now(), clock.now() + 60s);
  EXPECT_TRUE(poll_until([&] { return store.asked(Verb::release).size() == 2; }));
  EXPECT_EQ(store.asked(Verb::release).back().to, "");
}

TEST_F(WaitHubTest, also_if_the_hub_closes_with_it) {
  store.answer(denies_heirs);
  Request release = same_targets(Verb::release, acquire(1, "DEFAULT:report"));
  release.to = "heir";
  hub.undo(release, clock.now() + 10s, clock.now() + 60s);
  hub.stop();
  ASSERT_EQ(store.asked(Verb::release).size(), 2U);
  EXPECT_EQ(store.asked(Verb::release).back().to, "");
}

}  // namespace
}  // namespace baton::test
