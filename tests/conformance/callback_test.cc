// What acquire and release promise to callers that do not wait for them, on whatever store the
// program was built for.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "clients.h"

namespace baton::test {
namespace {

const AcquireOptions kVeryPatient{.ttl = 3s, .wait = 600s};

class Callback : public Client {
 protected:
  // What a callback was given.
  template <typename T>
  struct Answer {
    std::promise<Result<T>> promise;
    std::future<Result<T>> future = promise.get_future();
    auto then() {
      return [this](Result<T> result) { promise.set_value(std::move(result)); };
    }
  };
  template <typename T>
  Result<T> value_of(Answer<T>& answer) {
    EXPECT_TRUE(arrives(answer.future));
    return answer.future.get();
  }
};

INSTANTIATE_TEST_SUITE_P(Wakeups, Callback, ::testing::Bool(), wakeups_name);

TEST_P(Callback, a_free_lock_is_granted_and_free_again_once_its_release_was_answered) {
  auto a = replica("a");
  auto b = replica("b");
  Answer<Lease> granted;
  a.locks.acquire_async({kName}, kShort, granted.then());
  auto lease = value_of(granted);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->valid());
  EXPECT_EQ(b.locks.try_acquire(kName, kShort).error().code, Code::busy);
  Answer<void> released;
  lease->release_async(released.then());
  EXPECT_FALSE(lease->valid()) << "nobody works on under a lock that is being given away";
  EXPECT_TRUE(lease->lost().stop_requested());
  EXPECT_TRUE(value_of(released));
  const auto next = b.locks.try_acquire(kName, kShort);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_GT(next->token(), lease->token());
}

TEST_P(Callback, a_taken_lock_is_busy_at_once_for_who_does_not_wait) {
  auto a = replica("a");
  auto b = replica("b");
  const auto held = a.locks.acquire(kName, kShort).value();
  Answer<Lease> asked;
  b.locks.acquire_async({kName}, kShort, asked.then());
  const auto busy = value_of(asked);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::busy);
  EXPECT_NE(busy.error().message.find("held by a"), std::string::npos) << busy.error().message;
}

TEST_P(Callback, a_taken_lock_comes_to_who_waits_when_its_holder_lets_go) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, {.ttl = 600s}).value();
  Answer<Lease> asked;
  b.locks.acquire_async({kName}, kVeryPatient, asked.then());
  EXPECT_TRUE(eventually([&] { return a.locks.get(kName).value().waiting == 1; }));
  EXPECT_FALSE(is_there(asked.future));
  held.release_async();
  EXPECT_TRUE(value_of(asked));
}

TEST_P(Callback, a_wait_that_is_stopped_is_cancelled_and_leaves_the_queue) {
  auto a = replica("a");
  auto b = replica("b");
  const auto held = a.locks.acquire(kName, {.ttl = 600s}).value();
  std::stop_source stop;
  AcquireOptions options = kVeryPatient;
  options.stop = stop.get_token();
  Answer<Lease> asked;
  b.locks.acquire_async({kName}, options, asked.then());
  EXPECT_TRUE(eventually([&] { return a.locks.get(kName).value().waiting == 1; }));
  stop.request_stop();
  EXPECT_EQ(value_of(asked).error().code, Code::cancelled);
  EXPECT_TRUE(eventually([&] { return a.locks.get(kName).value().waiting == 0; }));
  Answer<Lease> late;
  b.locks.acquire_async({kName}, options, late.then());
  EXPECT_EQ(value_of(late).error().code, Code::cancelled) << "stopped before it began";
}

TEST_P(Callback, what_is_refused_without_asking_the_store_is_told_on_a_thread_of_the_client) {
  auto a = replica("a");
  std::thread::id told_on;
  Answer<Lease> asked;
  a.locks.acquire_async({kName}, {.ttl = 0s}, [&](Result<Lease> lease) {
    told_on = std::this_thread::get_id();
    asked.promise.set_value(std::move(lease));
  });
  EXPECT_EQ(value_of(asked).error().code, Code::bad_request);
  EXPECT_NE(told_on, std::this_thread::get_id());
}

TEST_P(Callback, last_words_are_written_with_the_release) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort).value();
  Answer<void> released;
  lease.release_async(released.then(), {.ordinal = 7, .text = "done"});
  EXPECT_TRUE(value_of(released));
  EXPECT_EQ(a.locks.acquire(kName, kShort).value().note(), (Note{7, "done"}));
}

TEST_P(Callback, a_second_release_says_that_it_was_released_before) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort).value();
  Answer<void> first;
  Answer<void> second;
  lease.release_async(first.then());
  lease.release_async(second.then());
  EXPECT_TRUE(value_of(first));
  EXPECT_EQ(value_of(second).error().code, Code::lost);
}

TEST_P(Callback, a_lease_that_is_dropped_in_a_callback_is_released_without_holding_it_up) {
  auto a = replica("a");
  auto b = replica("b");
  std::atomic<bool> returned = false;
  a.locks.acquire_async({kName}, {.ttl = 600s}, [&](Result<Lease> lease) {
    EXPECT_TRUE(lease) << lease.error().message;
    a.line->set(Line::holds);  // a request to the store now waits for the test
    if (lease) const Lease gone = std::move(*lease);
    returned = true;
  });
  EXPECT_TRUE(poll_until([&] { return returned.load(); })) << "it waited for its release";
  a.line->set(Line::good);
  EXPECT_TRUE(poll_until([&] { return returned.load(); }));
  expect_free_before(500s, b.locks);
}

TEST_P(Callback, what_a_callback_holds_may_have_a_lease_that_goes_with_it) {
  auto a = replica("a");
  auto b = replica("b");
  struct Session {
    std::optional<Lease> lease;
  };
  auto session = std::make_shared<Session>();
  const std::weak_ptr<Session> gone = session;
  std::promise<void> left;
  auto go = left.get_future().share();
  a.locks.acquire_async({kName}, {.ttl = 600s},
                        [go, session = std::move(session)](Result<Lease> lease) {
                          go.wait();  // nobody else has the session by now
                          if (lease) session->lease = std::move(*lease);
                        });
  left.set_value();
  EXPECT_TRUE(poll_until([&] { return gone.expired(); })) << "its end waits for itself";
  expect_free_before(500s, b.locks);
}

TEST_P(Callback, a_grant_whose_answer_was_lost_is_taken_back) {
  auto a = replica("a");
  auto b = replica("b");
  a.line->set(Line::loses_replies);
  Answer<Lease> asked;
  a.locks.acquire_async({kName}, {.ttl = 600s}, asked.then());
  const auto lost = value_of(asked);
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().in_doubt);
  a.line->set(Line::good);
  expect_free_before(500s, b.locks);
}

TEST_P(Callback, a_release_that_did_not_come_through_is_sent_again) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 600s}).value();
  a.line->set(Line::refuses);
  Answer<void> released;
  lease.release_async(released.then());
  EXPECT_EQ(value_of(released).error().code, Code::unavailable);
  a.line->set(Line::good);
  expect_free_before(500s, b.locks);
}

TEST_P(Callback, a_client_that_goes_still_gives_back_what_it_had) {
  auto b = replica("b");
  {
    auto a = replica("a");
    for (int i = 0; i < 20; ++i) {
      const LockName name{.subject = "report", .resources = {std::to_string(i)}};
      a.locks.acquire(name, {.ttl = 600s}).value().release_async();
    }
  }
  for (int i = 0; i < 20; ++i) {
    const LockName name{.subject = "report", .resources = {std::to_string(i)}};
    EXPECT_TRUE(b.locks.try_acquire(name, kShort)) << i;
  }
}

TEST_P(Callback, many_callers_without_threads_exclude_each_other) {
  auto a = replica("a");
  auto b = replica("b");
  // Each waits for up to a second if nobody wakes it.
  const int callers = GetParam() ? 6 : 30;
  const int each = GetParam() ? 2 : 4;
  std::atomic<int> holding = 0;
  std::atomic<int> turns = 0;
  std::atomic<bool> overlap = false;
  std::function<void(LockClient&, int)> take = [&](LockClient& locks, int left) {
    if (left == 0) return;
    locks.acquire_async({kName}, {.ttl = 60s, .wait = 3600s}, [&, left](Result<Lease> lease) {
      if (!lease) return;
      if (++holding > 1) overlap = true;
      --holding;
      lease->release_async([&, left](const Result<void>& released) {
        EXPECT_TRUE(released) << released.error().message;
        ++turns;
        take(locks, left - 1);
      });
    });
  };
  for (int i = 0; i < callers; ++i) take(i % 2 == 0 ? a.locks : b.locks, each);
  EXPECT_TRUE(eventually([&] { return turns == callers * each; })) << turns;
  EXPECT_FALSE(overlap);
}

}  // namespace
}  // namespace baton::test
