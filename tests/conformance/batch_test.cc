// Requests that travel together: each comes to what it would come to alone. A store may say once
// what they have in common, and may have a shorter way for names that are free.

#include "promise.h"

namespace baton::test {
namespace {

class Batch : public Promise {
 protected:
  // A store that has granted before, for its first grant may be a way of its own.
  Batch() {
    const Request first = acquire(1000, "DEFAULT:first");
    EXPECT_EQ(outcome(first), Outcome::granted);
    EXPECT_EQ(end(first).outcome, Outcome::done);
  }

  static std::vector<Request> some(std::uint64_t count) {
    std::vector<Request> batch;
    for (std::uint64_t i = 1; i <= count; ++i) {
      batch.push_back(acquire(i, "DEFAULT:job:" + std::to_string(i)));
      batch.back().owner = "node-1";
      batch.back().channel = "process-1";
      batch.back().metadata = {{"purpose", "a test"}};
    }
    return batch;
  }
  static std::vector<Request> releases(const std::vector<Request>& acquires) {
    std::vector<Request> batch;
    for (const Request& request : acquires) batch.push_back(same_targets(Verb::release, request));
    return batch;
  }

  std::vector<Reply> apply(const std::vector<Request>& batch) {
    auto replies = store->apply(batch, soon());
    EXPECT_TRUE(replies) << replies.error().message;
    EXPECT_TRUE(!replies || replies->size() == batch.size());
    return replies ? std::move(*replies) : std::vector<Reply>(batch.size());
  }

  void expect_held(const Request& request, const Reply& reply) {
    SCOPED_TRACE(request.targets[0].key);
    ASSERT_EQ(reply.outcome, Outcome::granted) << reply.message;
    ASSERT_EQ(reply.tokens.size(), 1U);
    const LockInfo info = look(request.targets[0].key);
    ASSERT_EQ(info.holders.size(), 1U);
    const HolderInfo& holder = info.holders[0];
    EXPECT_EQ(holder.grant, request.grant);
    EXPECT_EQ(holder.token, reply.tokens[0]);
    EXPECT_EQ(holder.mode, request.targets[0].mode);
    EXPECT_EQ(holder.predicate, request.predicate);
    EXPECT_EQ(holder.owner, request.owner);
    EXPECT_EQ(holder.metadata, request.metadata);
    EXPECT_EQ(holder.ttl, request.ttl);
    EXPECT_EQ(holder.expires_in, request.ttl);
    EXPECT_EQ(info.note, Note{});
    EXPECT_EQ(info.waiting, 0U);
    EXPECT_EQ(outcome(acquire(99, request.targets[0].key)), Outcome::busy);
    EXPECT_EQ(renew(request).outcome, Outcome::granted);
  }

  void expect_all_held_until_released(const std::vector<Request>& batch) {
    const auto granted = apply(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) expect_held(batch[i], granted[i]);
    for (const Reply& reply : apply(releases(batch))) EXPECT_EQ(reply.outcome, Outcome::done);
    for (const Request& request : batch) EXPECT_TRUE(look(request.targets[0].key).holders.empty());
  }
};

TEST_F(Batch, requests_on_the_same_terms_are_granted_on_them) {
  for (int round = 0; round < 2; ++round) expect_all_held_until_released(some(6));
}

TEST_F(Batch, requests_on_terms_of_their_own_are_granted_on_those) {
  std::vector<Request> batch = some(6);
  batch[0].owner = "node-2";
  batch[1].predicate = "writing";
  batch[2].metadata = {{"purpose", "another"}, {"ticket", "7"}};
  batch[3].ttl = 2 * kTtl;
  batch[4].channel = "process-2";
  expect_all_held_until_released(batch);
}

TEST_F(Batch, one_that_is_not_free_changes_nothing_for_the_others) {
  std::vector<Request> batch = some(5);
  const Request other = acquire(50, batch[1].targets[0].key);
  ASSERT_EQ(outcome(other), Outcome::granted);
  const auto replies = apply(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (i != 1) expect_held(batch[i], replies[i]);
  }
  EXPECT_EQ(replies[1].outcome, Outcome::busy);
  const auto ended = apply(releases(batch));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(ended[i].outcome, i == 1 ? Outcome::lost : Outcome::done) << i;
  }
  EXPECT_EQ(look(other.targets[0].key).holders.at(0).grant, other.grant);
  EXPECT_EQ(end(other).outcome, Outcome::done);
  expect_all_held_until_released(batch);
}

TEST_F(Batch, every_grant_has_a_higher_token_than_the_last_of_its_name) {
  std::vector<Token> last(6, 0);
  for (int round = 0; round < 3; ++round) {
    const auto batch = some(last.size());
    const auto replies = apply(batch);
    for (std::size_t i = 0; i < last.size(); ++i) {
      ASSERT_EQ(replies[i].outcome, Outcome::granted);
      EXPECT_GT(replies[i].tokens.at(0), last[i]);
      last[i] = replies[i].tokens[0];
    }
    (void)apply(releases(batch));
    // Alone, and the other way round.
    for (std::size_t i = last.size(); i-- > 0;) {
      const Reply reply = ask(batch[i]);
      ASSERT_EQ(reply.outcome, Outcome::granted);
      EXPECT_GT(reply.tokens.at(0), last[i]);
      last[i] = reply.tokens[0];
      EXPECT_EQ(end(batch[i]).outcome, Outcome::done);
    }
  }
}

}  // namespace
}  // namespace baton::test
