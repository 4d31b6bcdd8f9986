// A caller acquires a name again on the same terms as before. A store may reuse what it knows of
// the last grant, but nothing that happened to that grant may show in the new one.

#include "promise.h"

namespace baton::test {
namespace {

class Reacquire : public Promise {
 protected:
  // The same terms every time; only the grant differs.
  static Request take(std::uint64_t number, Mode mode = Mode::X) {
    Request request = acquire(number, kName, mode);
    request.owner = "node-1";
    request.channel = "process-1";
    return request;
  }
  void expect_held(std::uint64_t number, Mode mode = Mode::X) {
    const LockInfo info = look(kName);
    ASSERT_EQ(info.holders.size(), 1U);
    const HolderInfo& holder = info.holders[0];
    EXPECT_EQ(holder.grant, grant(number));
    EXPECT_EQ(holder.mode, mode);
    EXPECT_EQ(holder.predicate, "holding");
    EXPECT_EQ(holder.owner, "node-1");
    EXPECT_EQ(holder.metadata, Metadata{});
    EXPECT_EQ(holder.ttl, kTtl);
    EXPECT_EQ(holder.expires_in, kTtl);
    EXPECT_FALSE(holder.revoked);
    EXPECT_FALSE(holder.released);
    EXPECT_TRUE(holder.claimed);
    EXPECT_EQ(renew(take(number, mode)).outcome, Outcome::granted);
  }
};

TEST_F(Reacquire, every_grant_has_a_higher_token) {
  Token last = 0;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const Reply reply = ask(take(i));
    ASSERT_EQ(reply.outcome, Outcome::granted);
    EXPECT_GT(reply.tokens.at(0), last);
    last = reply.tokens.at(0);
    expect_held(i);
    EXPECT_EQ(end(take(i)).outcome, Outcome::done);
  }
}

TEST_F(Reacquire, another_caller_who_held_it_in_between_leaves_nothing_of_its_terms) {
  for (std::uint64_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(outcome(take(10 * i)), Outcome::granted);
    expect_held(10 * i);
    EXPECT_EQ(end(take(10 * i)).outcome, Outcome::done);
    Request other = take(10 * i + 1);
    other.predicate = "writing";
    other.metadata = {{"purpose", "another"}};
    // In a batch of two: a store may take another path for it than for a lone acquire.
    const Request batch[] = {other, acquire(10 * i + 2, kOther)};
    const auto replies = store->apply(batch, soon());
    ASSERT_TRUE(replies);
    ASSERT_EQ(replies->at(0).outcome, Outcome::granted);
    EXPECT_EQ(end(other).outcome, Outcome::done);
    EXPECT_EQ(end(batch[1]).outcome, Outcome::done);
  }
}

TEST_F(Reacquire, a_lower_mode_of_the_last_grant_is_not_the_mode_of_the_next) {
  if (!can_convert(Mode::X, Mode::S)) GTEST_SKIP() << "this store does not convert so";
  ASSERT_EQ(outcome(take(1)), Outcome::granted);
  ASSERT_EQ(convert(take(1), Mode::S).outcome, Outcome::granted);
  EXPECT_EQ(end(take(1)).outcome, Outcome::done);
  ASSERT_EQ(outcome(take(2)), Outcome::granted);
  expect_held(2);
  EXPECT_EQ(outcome(acquire(3, kName, Mode::S)), Outcome::busy);
}

TEST_F(Reacquire, a_grant_after_one_that_was_revoked_is_not) {
  ASSERT_EQ(outcome(take(1)), Outcome::granted);
  Request stop = same_targets(Verb::break_, take(1));
  stop.reason = "because";
  ASSERT_EQ(outcome(stop), Outcome::done);
  EXPECT_EQ(end(take(1)).outcome, Outcome::done);
  ASSERT_EQ(outcome(take(2)), Outcome::granted);
  expect_held(2);
}

TEST_F(Reacquire, whoever_shared_it_and_now_has_it_alone_is_in_the_way) {
  if (!can_convert(Mode::S, Mode::X)) GTEST_SKIP() << "this store does not convert so";
  const Request other = acquire(2, kName, Mode::S);
  ASSERT_EQ(outcome(take(1, Mode::S)), Outcome::granted);
  ASSERT_EQ(outcome(other), Outcome::granted);
  EXPECT_EQ(end(take(1, Mode::S)).outcome, Outcome::done);
  ASSERT_EQ(convert(other, Mode::X).outcome, Outcome::granted);
  EXPECT_EQ(outcome(take(3, Mode::S)), Outcome::busy);
}

TEST_F(Reacquire, what_stayed_taken_after_its_release_does_not_make_the_next_one_released) {
  if (!can_convert(Mode::S, Mode::X)) GTEST_SKIP() << "this store does not convert so";
  const auto long_one = [](std::uint64_t number) {
    Request request = take(number, Mode::S);
    request.at_least_for = kTtl;
    return request;
  };
  const Request other = acquire(2, kName, Mode::S);
  if (!can(long_one(1))) GTEST_SKIP() << "this store has no at-least-for";
  ASSERT_EQ(outcome(long_one(1)), Outcome::granted);
  ASSERT_EQ(outcome(other), Outcome::granted);
  EXPECT_EQ(end(long_one(1)).outcome, Outcome::done);
  time->advance(kTtl / 2);
  ASSERT_EQ(renew(other).outcome, Outcome::granted);
  time->advance(kTtl / 2);
  ASSERT_EQ(convert(other, Mode::X).outcome, Outcome::granted) << "nobody else is left";
  EXPECT_EQ(end(other).outcome, Outcome::done);
  ASSERT_EQ(outcome(long_one(3)), Outcome::granted);
  expect_held(3, Mode::S);
}

TEST_F(Reacquire, an_acquire_that_was_cancelled_before_it_came_takes_nothing) {
  ASSERT_EQ(outcome(take(1)), Outcome::granted);
  EXPECT_EQ(end(take(1)).outcome, Outcome::done);
  Request cancel = same_targets(Verb::cancel, take(2));
  cancel.tombstone_ttl = Millis(2'000);
  EXPECT_EQ(outcome(cancel), Outcome::done);
  EXPECT_EQ(outcome(take(2)), Outcome::lost);
  EXPECT_EQ(outcome(take(3)), Outcome::granted);
}

}  // namespace
}  // namespace baton::test
