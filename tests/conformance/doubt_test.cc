// What a client says of requests whose answers it did not get: in_doubt is true whenever a note or
// a grant may have been written, and `lost` means that nothing was.

#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "conformance/replicas.h"

namespace baton::test {
namespace {

class Doubt : public Replicas {
 protected:
  Doubt() : Replicas(fresh_store) {}

  [[nodiscard]] bool keeps_notes() const { return store->capabilities().notes; }
  std::int64_t ordinal(LockClient& locks) {
    const auto info = locks.get(kName);
    EXPECT_TRUE(info) << info.error().message;
    return info ? info->note.ordinal : -1;
  }

  // An acquire whose first try writes its note and is not answered, on a line that is good again
  // when its grant has expired; but it is not yet repeated.
  std::future<Result<Lease>> noted_and_expired(Replica& asking, AcquireOptions options) {
    asking.line->set(Line::loses_replies);
    auto acquire = std::async(std::launch::async, [&asking, options = std::move(options)] {
      return asking.locks.acquire(kName, options);
    });
    auto looking = replica("looking");
    EXPECT_TRUE(poll_until([&] { return ordinal(looking.locks) == 5; }));
    // Not answered yet: the reply was lost, and it is repeated only when the store's limit is over.
    asking.line->set(Line::good);
    time->advance(kShort.ttl + 1s);
    return acquire;
  }

  // The repetition finds the lock held by another, and waits until that is ended.
  void expect_doubt_while_queued(Code code, const std::function<void()>& end) {
    ASSERT_GT(store->capabilities().apply_limit, kShort.ttl + 1s);
    auto a = replica("a");
    auto b = replica("b");
    auto acquire = noted_and_expired(a, noting);
    const auto held = b.locks.acquire(kName, {.ttl = 600s});
    ASSERT_TRUE(held) << held.error().message;
    ASSERT_TRUE(eventually([&] { return b.locks.get(kName).value().waiting == 1; }, 20ms));
    end();
    ASSERT_TRUE(eventually([&] { return is_there(acquire); }, 20ms));
    const auto ended = acquire.get();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, code);
    EXPECT_TRUE(ended.error().in_doubt) << ended.error().message;
  }

  std::stop_source stop;
  const AcquireOptions noting{.ttl = kShort.ttl,
                              .wait = 15s,
                              .note = {.ordinal = 5, .text = "five"},
                              .stop = stop.get_token()};
};

TEST_F(Doubt, a_wait_that_times_out_says_that_its_first_try_may_have_written) {
  if (!keeps_notes()) GTEST_SKIP() << "this store keeps no notes";
  expect_doubt_while_queued(Code::timed_out, [] {});
}

TEST_F(Doubt, a_wait_that_is_stopped_says_that_its_first_try_may_have_written) {
  if (!keeps_notes()) GTEST_SKIP() << "this store keeps no notes";
  expect_doubt_while_queued(Code::cancelled, [&] { stop.request_stop(); });
}

TEST_F(Doubt, a_repeated_acquire_is_not_superseded_by_its_own_note) {
  if (!keeps_notes()) GTEST_SKIP() << "this store keeps no notes";
  auto a = replica("a");
  AcquireOptions first = noting;
  first.if_ordinal_below = 5;
  auto expired = noted_and_expired(a, first);
  ASSERT_TRUE(arrives(expired));
  const auto ended = expired.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::unavailable) << ended.error().message;
  EXPECT_TRUE(ended.error().in_doubt) << "nobody can tell whose note it is";
}

TEST_F(Doubt, a_repeated_acquire_finds_its_own_grant) {
  if (!keeps_notes()) GTEST_SKIP() << "this store keeps no notes";
  auto a = replica("a");
  auto b = replica("b");
  AcquireOptions patient = noting;
  patient.ttl = 600s;
  patient.wait = 60s;  // on a slow machine the repetition takes its time
  patient.if_ordinal_below = 5;
  a.line->set(Line::loses_replies);
  auto acquire = std::async(std::launch::async, [&] { return a.locks.acquire(kName, patient); });
  ASSERT_TRUE(poll_until([&] { return ordinal(b.locks) == 5; }));
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(acquire));
  const auto lease = acquire.get();
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->valid());
}

TEST_F(Doubt, an_acquire_that_was_never_sent_is_not_in_doubt) {
  auto a = replica("a");
  a.line->set(Line::refuses);
  const auto refused = a.locks.try_acquire(kName, kShort);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_FALSE(refused.error().in_doubt);
}

TEST_F(Doubt, a_release_that_is_repeated_in_the_background_is_in_doubt) {
  if (!keeps_notes()) GTEST_SKIP() << "this store keeps no notes";
  for (const Line line : {Line::refuses, Line::loses_requests, Line::loses_replies, Line::busy}) {
    auto a = replica("a");
    auto b = replica("b");
    auto lease = a.locks.acquire(kName, {.ttl = 60s});
    ASSERT_TRUE(lease) << lease.error().message;
    const std::int64_t next = ordinal(b.locks) + 1;
    a.line->set(line);
    const auto released = lease->release({.note = {.ordinal = next}});
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code, Code::unavailable);
    EXPECT_TRUE(released.error().in_doubt) << "its note will be written";
    a.line->set(Line::good);
    EXPECT_TRUE(eventually([&] { return ordinal(b.locks) == next; }));
    EXPECT_TRUE(eventually([&] { return b.locks.get(kName).value().holders.empty(); }));
  }
}

TEST_F(Doubt, a_stop_token_that_has_fired_cancels_before_the_store_is_asked) {
  auto a = replica("a");
  stop.request_stop();
  const auto calls = a.line->calls();
  const AcquireOptions options{.ttl = 3s, .stop = stop.get_token()};
  const auto stopped = a.locks.acquire(kName, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::cancelled);
  EXPECT_FALSE(stopped.error().in_doubt);
  std::promise<Result<Lease>> promise;
  a.locks.acquire_async({kName}, options,
                        [&](Result<Lease> lease) { promise.set_value(std::move(lease)); });
  auto later = promise.get_future();
  ASSERT_TRUE(arrives(later));
  const auto answer = later.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::cancelled);
  EXPECT_FALSE(answer.error().in_doubt);
  EXPECT_EQ(a.line->calls(), calls);
}

TEST_F(Doubt, with_lock_says_that_the_lease_was_lost_while_the_function_ran) {
  auto a = replica("a");
  const auto lose = [&](const Lease& lease) {
    a.line->set(Line::refuses);
    time->advance(kShort.ttl);
    EXPECT_FALSE(lease.valid());
    a.line->set(Line::good);
  };
  const auto number = a.locks.with_lock(kName, kShort, [&](Lease& lease) {
    lose(lease);
    return 7;
  });
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().code, Code::lost);
  const auto nothing = a.locks.with_lock(kName, kShort, [&](Lease& lease) { lose(lease); });
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::lost);
}

TEST_F(Doubt, with_lock_says_that_the_lock_was_broken_without_the_holder_hearing_of_it) {
  auto a = replica("a");
  const auto result = a.locks.with_lock(kName, {.ttl = 600s}, [&](Lease&) {
    Request broken;
    broken.verb = Verb::break_;
    broken.targets = {{key_of(kName), Mode::X}};
    broken.reason = "stuck";
    broken.immediately = true;
    EXPECT_TRUE(store->apply({&broken, 1}, soon()));
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::lost);
}

TEST_F(Doubt, a_function_that_releases_the_lease_itself_has_not_lost_it) {
  auto a = replica("a");
  const auto result = a.locks.with_lock(kName, kShort, [](Lease& lease) {
    EXPECT_TRUE(lease.release());
    return 7;
  });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*result, 7);
}

TEST_F(Doubt, an_unknown_mode_is_a_bad_request_and_invalid_at_the_store) {
  constexpr auto unknown = static_cast<Mode>(77);
  auto a = replica("a");
  auto lease = a.locks.acquire(LockName{.subject = "other"}, {.ttl = 600s});
  ASSERT_TRUE(lease) << lease.error().message;
  const auto calls = a.line->calls();
  EXPECT_EQ(a.locks.acquire(kName, {.mode = unknown}).error().code, Code::bad_request);
  EXPECT_EQ(lease->convert(unknown).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.find({.mode = unknown}).error().code, Code::bad_request);
  EXPECT_EQ(a.line->calls(), calls);
  const Request taken = acquire(1, key_of(kName), unknown);
  for (const Verb verb : {Verb::acquire, Verb::convert, Verb::release, Verb::get}) {
    Request request = taken;
    request.verb = verb;
    const auto replies = store->apply({&request, 1}, soon());
    ASSERT_TRUE(replies) << replies.error().message;
    EXPECT_EQ(replies->at(0).outcome, Outcome::invalid) << to_string(verb);
  }
}

}  // namespace
}  // namespace baton::test
