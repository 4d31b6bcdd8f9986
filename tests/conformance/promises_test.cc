// The promises of the lock model, one test each, on whatever store the program was built for.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "baton/name.h"
#include "core/apply.h"
#include "promise.h"

namespace baton::test {
namespace {

TEST_F(Promise, only_one_holds_an_exclusive_lock) {
  EXPECT_EQ(outcome(acquire(1, kName)), Outcome::granted);
  const Reply second = ask(acquire(2, kName));
  EXPECT_EQ(second.outcome, Outcome::busy);
  ASSERT_EQ(second.holders.size(), 1U);
  EXPECT_EQ(second.holders[0].owner, "node-1");
  EXPECT_EQ(second.retry_after, kTtl);
  EXPECT_EQ(outcome(acquire(3, kOther)), Outcome::granted);
}

TEST_F(Promise, the_compatibility_matrix_holds_for_every_pair_of_modes) {
  std::uint64_t number = 0;
  for (const Mode held : kAllModes) {
    for (const Mode asked : kAllModes) {
      const std::string key = "DEFAULT:pair:" + std::to_string(++number);
      const bool both = can(acquire(number * 2, key, held)) && can(acquire(number * 2, key, asked));
      if (!both) continue;
      ASSERT_EQ(outcome(acquire(number * 2, key, held)), Outcome::granted);
      EXPECT_EQ(outcome(acquire(number * 2 + 1, key, asked)),
                compatible(held, asked) ? Outcome::granted : Outcome::busy)
          << short_name(held) << " held, " << short_name(asked) << " asked";
    }
  }
}

TEST_F(Promise, a_lock_expires_after_its_ttl_and_not_before) {
  ASSERT_EQ(outcome(acquire(1, kName)), Outcome::granted);
  time->advance(kTtl - Millis(1));
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::busy);
  time->advance(Millis(1));
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::granted);
}

TEST_F(Promise, tokens_grow_over_release_expiry_break_and_forgetting) {
  Token last = 0;
  const auto grown = [&](const Request& request) {
    const Reply reply = ask(request);
    ASSERT_EQ(reply.outcome, Outcome::granted);
    EXPECT_GT(reply.tokens.at(0), last);
    last = reply.tokens[0];
  };
  grown(acquire(1, kName));
  end(acquire(1, kName));
  grown(acquire(2, kName));
  time->advance(kTtl);
  grown(acquire(3, kName));
  Request broken;
  broken.verb = Verb::break_;
  broken.targets = {{kName, Mode::X}};
  broken.immediately = true;
  ask(broken);
  grown(acquire(4, kName));
  end(acquire(4, kName));
  time->advance(std::chrono::hours(24));
  for (std::uint64_t i = 0; i < 20; ++i)
    outcome(acquire(100 + i, "DEFAULT:x:" + std::to_string(i)));
  grown(acquire(5, kName));
}

TEST_F(Promise, a_repeated_acquire_finds_its_own_grant_with_its_time_renewed) {
  const Reply first = ask(acquire(1, kName));
  time->advance(kTtl - Millis(1));
  const Reply again = ask(acquire(1, kName));
  EXPECT_EQ(again.outcome, Outcome::granted);
  EXPECT_EQ(again.tokens, first.tokens);
  time->advance(kTtl - Millis(1));
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::busy);
}

TEST_F(Promise, an_expired_grant_is_never_renewed) {
  ask(acquire(1, kName));
  time->advance(kTtl - Millis(1));
  EXPECT_EQ(renew(acquire(1, kName)).outcome, Outcome::granted);
  time->advance(kTtl);
  EXPECT_EQ(renew(acquire(1, kName)).outcome, Outcome::lost);
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::granted);
}

TEST_F(Promise, only_the_owner_of_a_grant_can_release_it) {
  ask(acquire(1, kName));
  EXPECT_EQ(end(acquire(2, kName)).outcome, Outcome::lost);
  EXPECT_EQ(outcome(acquire(3, kName)), Outcome::busy);
  EXPECT_EQ(end(acquire(1, kName)).outcome, Outcome::done);
  EXPECT_EQ(end(acquire(1, kName)).outcome, Outcome::lost);
  EXPECT_EQ(outcome(acquire(3, kName)), Outcome::granted);
}

TEST_F(Promise, waiters_are_served_in_the_order_they_came) {
  ask(acquire(1, kName));
  for (std::uint64_t i = 2; i <= 4; ++i) {
    EXPECT_EQ(outcome(acquire(i, kName, Mode::X, kQueueTtl)), Outcome::queued);
  }
  EXPECT_EQ(look(kName).waiting, 3U);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(end(acquire(i, kName)).outcome, Outcome::done);
    for (std::uint64_t j = i + 2; j <= 4; ++j) {
      EXPECT_EQ(claim(acquire(j, kName)).outcome, Outcome::queued);
    }
    EXPECT_EQ(claim(acquire(i + 1, kName)).outcome, Outcome::granted);
  }
}

TEST_F(Promise, nobody_passes_an_incompatible_waiter) {
  ask(acquire(1, kName, Mode::S));
  EXPECT_EQ(outcome(acquire(2, kName, Mode::X, kQueueTtl)), Outcome::queued);
  EXPECT_EQ(outcome(acquire(3, kName, Mode::S)), Outcome::busy);
  EXPECT_EQ(outcome(acquire(4, kName, Mode::S, kQueueTtl)), Outcome::queued);
  end(acquire(1, kName, Mode::S));
  EXPECT_EQ(claim(acquire(4, kName, Mode::S)).outcome, Outcome::queued);
  EXPECT_EQ(claim(acquire(2, kName)).outcome, Outcome::granted);
}

TEST_F(Promise, all_compatible_waiters_at_the_front_are_promoted_together) {
  ask(acquire(1, kName));
  for (std::uint64_t i = 2; i <= 4; ++i) ask(acquire(i, kName, Mode::S, kQueueTtl));
  ask(acquire(5, kName, Mode::X, kQueueTtl));
  ask(acquire(6, kName, Mode::S, kQueueTtl));
  end(acquire(1, kName));
  for (std::uint64_t i = 2; i <= 4; ++i) {
    EXPECT_EQ(claim(acquire(i, kName, Mode::S)).outcome, Outcome::granted);
  }
  EXPECT_EQ(claim(acquire(5, kName)).outcome, Outcome::queued);
  EXPECT_EQ(claim(acquire(6, kName, Mode::S)).outcome, Outcome::queued);
}

TEST_F(Promise, a_hand_off_that_is_not_claimed_passes_on) {
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  ask(acquire(3, kName, Mode::X, kQueueTtl));
  end(acquire(1, kName));
  time->advance(kClaimWithin - Millis(1));
  EXPECT_EQ(claim(acquire(3, kName)).outcome, Outcome::queued);
  time->advance(Millis(1));
  EXPECT_EQ(claim(acquire(3, kName)).outcome, Outcome::granted);
  EXPECT_EQ(claim(acquire(2, kName)).outcome, Outcome::lost);
}

TEST_F(Promise, a_claimed_hand_off_lasts_its_ttl_from_the_claim) {
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  end(acquire(1, kName));
  time->advance(kClaimWithin / 2);
  ASSERT_EQ(claim(acquire(2, kName)).outcome, Outcome::granted);
  time->advance(kTtl - Millis(1));
  EXPECT_EQ(outcome(acquire(3, kName)), Outcome::busy);
}

TEST_F(Promise, a_waiter_that_stops_asking_delays_nobody) {
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  time->advance(kQueueTtl - Millis(1));
  ask(acquire(3, kName, Mode::X, kQueueTtl));
  time->advance(Millis(1));
  end(acquire(1, kName));
  EXPECT_EQ(claim(acquire(3, kName)).outcome, Outcome::granted);
  EXPECT_EQ(claim(acquire(2, kName)).outcome, Outcome::lost);
}

TEST_F(Promise, a_refreshed_waiter_keeps_its_place) {
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  ask(acquire(3, kName, Mode::X, Millis(20'000)));
  for (int i = 0; i < 3; ++i) {
    time->advance(kQueueTtl - Millis(1));
    Request refresh = same_targets(Verb::claim, acquire(2, kName));
    refresh.queue_ttl = kQueueTtl;
    EXPECT_EQ(outcome(refresh), i < 2 ? Outcome::queued : Outcome::granted);
  }
}

TEST_F(Promise, a_waiter_that_asks_promotes_itself_when_the_holder_has_expired) {
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, Millis(60'000)));
  time->advance(kTtl);
  EXPECT_EQ(claim(acquire(2, kName)).outcome, Outcome::granted);
}

TEST_F(Promise, a_set_is_taken_whole_or_not_at_all) {
  if (!can_take_sets()) GTEST_SKIP() << "this store takes no sets";
  ask(acquire(1, kOther));
  const Request both = acquire(2, {{kName, Mode::X}, {kOther, Mode::X}});
  EXPECT_EQ(outcome(both), Outcome::busy);
  EXPECT_EQ(outcome(acquire(3, kName)), Outcome::granted);
  end(acquire(3, kName));
  end(acquire(1, kOther));
  const Reply reply = ask(both);
  EXPECT_EQ(reply.outcome, Outcome::granted);
  EXPECT_EQ(reply.tokens.size(), 2U);
  EXPECT_EQ(outcome(acquire(4, kName)), Outcome::busy);
  EXPECT_EQ(outcome(acquire(4, kOther)), Outcome::busy);
  EXPECT_EQ(end(both).outcome, Outcome::done);
  EXPECT_EQ(outcome(acquire(5, kName)), Outcome::granted);
}

TEST_F(Promise, a_waiting_set_keeps_its_place_in_every_queue) {
  if (!can_take_sets()) GTEST_SKIP() << "this store takes no sets";
  ask(acquire(1, kName));
  const Request both = acquire(2, {{kName, Mode::X}, {kOther, Mode::X}}, kQueueTtl);
  EXPECT_EQ(outcome(both), Outcome::queued);
  EXPECT_EQ(outcome(acquire(3, kOther)), Outcome::busy);
  end(acquire(1, kName));
  EXPECT_EQ(outcome(acquire(4, kName)), Outcome::busy);
  EXPECT_EQ(claim(both).outcome, Outcome::granted);
}

TEST_F(Promise, intent_locks_of_children_meet_at_the_parent) {
  if (!can_take_sets()) GTEST_SKIP() << "this store takes no sets";
  const std::string document = "DEFAULT:document:fs:7";
  ASSERT_EQ(outcome(acquire(1, {{"DEFAULT:page:fs:7:1", Mode::X}, {document, Mode::IX}})),
            Outcome::granted);
  EXPECT_EQ(outcome(acquire(2, {{"DEFAULT:page:fs:7:2", Mode::X}, {document, Mode::IX}})),
            Outcome::granted);
  EXPECT_EQ(outcome(acquire(3, document, Mode::S)), Outcome::busy);
  EXPECT_EQ(outcome(acquire(4, document, Mode::IS)), Outcome::granted);
}

TEST_F(Promise, a_conversion_goes_to_the_supremum_and_ahead_of_the_queue) {
  if (!can_convert(Mode::S, Mode::IX)) GTEST_SKIP() << "this store does not convert so";
  ask(acquire(1, kName, Mode::S));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  const Reply up = convert(acquire(1, kName, Mode::S), Mode::IX);
  EXPECT_EQ(up.outcome, Outcome::granted);
  EXPECT_EQ(look(kName).holders.at(0).mode, Mode::SIX);
  EXPECT_EQ(convert(acquire(1, kName, Mode::S), Mode::X).outcome, Outcome::granted);
  EXPECT_EQ(look(kName).holders.at(0).mode, Mode::X);
}

TEST_F(Promise, a_stronger_hold_has_a_higher_token_than_all_it_was_held_beside) {
  if (!can_convert(Mode::S, Mode::X)) GTEST_SKIP() << "this store does not convert so";
  ask(acquire(1, kName, Mode::S));
  const Token beside = ask(acquire(2, kName, Mode::S)).tokens.at(0);
  end(acquire(2, kName, Mode::S));
  EXPECT_GT(convert(acquire(1, kName, Mode::S), Mode::X).tokens.at(0), beside);
}

TEST_F(Promise, a_conversion_downwards_lets_waiters_in) {
  if (!can_convert(Mode::X, Mode::S)) GTEST_SKIP() << "this store does not convert so";
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::S, kQueueTtl));
  EXPECT_EQ(convert(acquire(1, kName), Mode::S).outcome, Outcome::granted);
  EXPECT_EQ(claim(acquire(2, kName, Mode::S)).outcome, Outcome::granted);
}

TEST_F(Promise, a_waiting_conversion_holds_back_newcomers) {
  if (!can_convert(Mode::S, Mode::X)) GTEST_SKIP() << "this store does not convert so";
  ask(acquire(1, kName, Mode::S));
  ask(acquire(2, kName, Mode::S));
  EXPECT_EQ(convert(acquire(1, kName, Mode::S), Mode::X, kQueueTtl).outcome, Outcome::queued);
  EXPECT_EQ(outcome(acquire(3, kName, Mode::S)), Outcome::busy);
  end(acquire(2, kName, Mode::S));
  EXPECT_EQ(convert(acquire(1, kName, Mode::S), Mode::X, kQueueTtl).outcome, Outcome::granted);
}

TEST_F(Promise, the_second_of_two_deadlocked_conversions_is_told_at_once_and_keeps_its_mode) {
  if (!can_convert(Mode::S, Mode::X)) GTEST_SKIP() << "this store does not convert so";
  ask(acquire(1, kName, Mode::S));
  ask(acquire(2, kName, Mode::S));
  EXPECT_EQ(convert(acquire(1, kName, Mode::S), Mode::X, kQueueTtl).outcome, Outcome::queued);
  EXPECT_EQ(convert(acquire(2, kName, Mode::S), Mode::X, kQueueTtl).outcome, Outcome::deadlock);
  EXPECT_EQ(renew(acquire(2, kName, Mode::S)).outcome, Outcome::granted);
  for (const HolderInfo& holder : look(kName).holders) EXPECT_EQ(holder.mode, Mode::S);
}

TEST_F(Promise, a_note_outlives_its_writer_and_passes_to_the_next_holder) {
  Request first = acquire(1, kName);
  first.change = {.ordinal = 7, .text = "seven"};
  EXPECT_EQ(ask(first).note, Note{});
  Request last_words = same_targets(Verb::release, first);
  last_words.change.text = "seven, done";
  ask(last_words);
  time->advance(std::chrono::hours(100));
  const Reply next = ask(acquire(2, kName));
  EXPECT_EQ(next.note, (Note{7, "seven, done"}));
}

TEST_F(Promise, a_holder_that_has_lost_its_lock_cannot_write_the_note) {
  ask(acquire(1, kName));
  time->advance(kTtl);
  Request late = same_targets(Verb::release, acquire(1, kName));
  late.change.text = "too late";
  EXPECT_EQ(outcome(late), Outcome::lost);
  late.verb = Verb::renew;
  EXPECT_EQ(outcome(late), Outcome::lost);
  EXPECT_EQ(look(kName).note, Note{});
}

TEST_F(Promise, who_comes_second_for_an_ordinal_is_superseded_and_writes_nothing) {
  Request first = acquire(1, kName);
  first.if_ordinal_below = 5;
  first.change.ordinal = 5;
  ASSERT_EQ(outcome(first), Outcome::granted);
  Request second = acquire(2, kName);
  second.if_ordinal_below = 5;
  second.change = {.ordinal = 5, .text = "mine"};
  EXPECT_EQ(outcome(second), Outcome::superseded);
  end(first);
  EXPECT_EQ(outcome(second), Outcome::superseded);
  EXPECT_EQ(look(kName).note, (Note{5, ""}));
  second.if_ordinal_below = 6;
  EXPECT_EQ(outcome(second), Outcome::granted);
}

TEST_F(Promise, a_waiter_learns_at_its_claim_that_it_was_superseded) {
  Request first = acquire(1, kName);
  first.change.ordinal = 1;
  ask(first);
  Request second = acquire(2, kName, Mode::X, kQueueTtl);
  second.if_ordinal_below = 2;
  second.change.ordinal = 2;
  EXPECT_EQ(outcome(second), Outcome::queued);
  Request done = same_targets(Verb::release, first);
  done.change.ordinal = 2;
  ask(done);
  EXPECT_EQ(claim(second).outcome, Outcome::superseded);
  EXPECT_EQ(outcome(acquire(3, kName)), Outcome::granted);
}

TEST_F(Promise, at_least_for_keeps_a_released_lock_taken) {
  Request request = acquire(1, kName);
  request.at_least_for = Millis(3'000);
  ask(request);
  time->advance(Millis(1'000));
  EXPECT_EQ(end(request).outcome, Outcome::done);
  EXPECT_EQ(renew(request).outcome, Outcome::lost);
  time->advance(Millis(1'999));
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::busy);
  time->advance(Millis(1));
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::granted);
}

TEST_F(Promise, a_broken_lock_is_free_once_its_holder_has_acknowledged) {
  ask(acquire(1, kName));
  Request breaking;
  breaking.verb = Verb::break_;
  breaking.targets = {{kName, Mode::X}};
  breaking.reason = "stuck";
  const Reply hit = ask(breaking);
  ASSERT_EQ(hit.holders.size(), 1U);
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::busy);
  const Reply told = renew(acquire(1, kName));
  EXPECT_EQ(told.outcome, Outcome::lost);
  EXPECT_NE(told.message.find("stuck"), std::string::npos);
  EXPECT_EQ(end(acquire(1, kName)).outcome, Outcome::done);
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::granted);
}

TEST_F(Promise, a_broken_lock_is_free_once_its_holder_has_expired) {
  ask(acquire(1, kName));
  Request breaking;
  breaking.verb = Verb::break_;
  breaking.targets = {{kName, Mode::X}};
  ask(breaking);
  time->advance(kTtl);
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::granted);
}

TEST_F(Promise, a_cancelled_acquire_that_arrives_late_grants_nothing) {
  Request cancel = same_targets(Verb::cancel, acquire(1, kName));
  cancel.tombstone_ttl = Millis(5'000);
  EXPECT_EQ(outcome(cancel), Outcome::done);
  EXPECT_EQ(outcome(acquire(1, kName)), Outcome::lost);
  EXPECT_EQ(outcome(acquire(2, kName)), Outcome::granted);
}

TEST_F(Promise, cancelling_a_grant_frees_it_and_promotes_the_next) {
  Request first = acquire(1, kName);
  first.at_least_for = Millis(5'000);
  ask(first);
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  EXPECT_EQ(outcome(same_targets(Verb::cancel, first)), Outcome::done);
  EXPECT_EQ(claim(acquire(2, kName)).outcome, Outcome::granted);
}

TEST_F(Promise, a_release_to_a_node_hands_over_out_of_turn) {
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  ask(acquire(3, kName, Mode::X, kQueueTtl));
  Request transfer = same_targets(Verb::release, acquire(1, kName));
  transfer.to = "node-9";
  if (!can(transfer)) GTEST_SKIP() << "this store does not transfer";
  EXPECT_EQ(outcome(transfer), Outcome::denied);
  EXPECT_EQ(renew(acquire(1, kName)).outcome, Outcome::granted);
  transfer.to = "node-3";
  EXPECT_EQ(outcome(transfer), Outcome::done);
  EXPECT_EQ(claim(acquire(2, kName)).outcome, Outcome::queued);
  EXPECT_EQ(claim(acquire(3, kName)).outcome, Outcome::granted);
}

TEST_F(Promise, a_client_of_another_schema_version_is_denied) {
  Request schema = acquire(1, std::string(core::kSchemaKey));
  schema.change = {.ordinal = 3, .text = "{}"};
  ASSERT_EQ(outcome(schema), Outcome::granted);
  Request client = acquire(2, kName);
  client.schema_version = 2;
  EXPECT_EQ(outcome(client), Outcome::denied);
  client.schema_version = 3;
  EXPECT_EQ(outcome(client), Outcome::granted);
  // A lease from before goes on until it ends: only new locks are refused.
  client.schema_version = 2;
  EXPECT_EQ(outcome(same_targets(Verb::renew, client)), Outcome::granted);
  EXPECT_EQ(outcome(same_targets(Verb::release, client)), Outcome::done);
}

TEST_F(Promise, one_bad_request_does_not_harm_its_batch) {
  std::vector<Request> batch = {acquire(1, kName), acquire(2, std::vector<Target>{}),
                                acquire(3, kOther)};
  batch.push_back(acquire(4, "DEFAULT:third"));
  batch.back().ttl = Millis(-1);
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->at(0).outcome, Outcome::granted);
  EXPECT_EQ(replies->at(1).outcome, Outcome::invalid);
  EXPECT_EQ(replies->at(2).outcome, Outcome::granted);
  EXPECT_EQ(replies->at(3).outcome, Outcome::invalid);
}

TEST_F(Promise, a_batch_may_hold_many_requests_for_one_name) {
  std::vector<Request> batch;
  for (std::uint64_t i = 1; i <= 50; ++i) batch.push_back(acquire(i, kName, Mode::X, kQueueTtl));
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->front().outcome, Outcome::granted);
  for (std::size_t i = 1; i < 50; ++i) EXPECT_EQ(replies->at(i).outcome, Outcome::queued);
}

TEST_F(Promise, a_token_is_used_up_even_if_its_grant_ended_within_the_batch) {
  ask(acquire(1, kName, Mode::S));
  std::vector<Request> batch = {acquire(2, kName, Mode::S)};
  batch.push_back(same_targets(Verb::release, batch[0]));
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  ASSERT_EQ(replies->at(0).outcome, Outcome::granted);
  EXPECT_EQ(replies->at(1).outcome, Outcome::done);
  const Reply next = ask(acquire(3, kName, Mode::S));
  ASSERT_EQ(next.outcome, Outcome::granted);
  EXPECT_GT(next.tokens.at(0), replies->at(0).tokens.at(0));
}

TEST_F(Promise, odd_but_legal_names_stay_themselves) {
  const std::vector<std::string> odd = {"a'b",  "a\"b",  "a\\b", "{a,b}", "NULL", "a b", "ü",
                                        "日本", "a%3Ab", "$1",   "--",    "_%",   "😀"};
  std::uint64_t number = 0;
  for (const auto& part : odd) {
    const std::string key = key_of({.subject = "odd", .resources = {part}});
    ASSERT_EQ(outcome(acquire(++number, key)), Outcome::granted) << key;
    EXPECT_EQ(look(key).holders.size(), 1U) << key;
  }
  Query query;
  query.subject = "odd";
  query.region = "DEFAULT";
  const auto page = store->find(query, soon());
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->items.size(), odd.size());
}

TEST_F(Promise, find_matches_partial_patterns) {
  ask(acquire(1, "DEFAULT:page:fs-1:2"));
  ask(acquire(2, "DEFAULT:page:fs-1:3", Mode::S));
  ask(acquire(3, "DEFAULT:page:fs-2:1"));
  ask(acquire(4, "EU:page:fs-1:2"));
  ask(acquire(5, "DEFAULT:pages:fs-1"));
  const auto found = [&](const Query& query) {
    const auto page = store->find(query, soon());
    EXPECT_TRUE(page) << page.error().message;
    return page ? page->items.size() : 0;
  };
  EXPECT_EQ(found({}), 5U);
  EXPECT_EQ(found({.subject = "page"}), 4U);
  EXPECT_EQ(found({.region = "DEFAULT", .subject = "page"}), 3U);
  EXPECT_EQ(found({.region = "DEFAULT", .subject = "page", .resources = {"fs-1"}}), 2U);
  EXPECT_EQ(found({.resources = {"fs-1"}}), 4U);
  EXPECT_EQ(found({.mode = Mode::S}), 1U);
  EXPECT_EQ(found({.owner = "node-3"}), 1U);
  EXPECT_EQ(found({.predicate = "nothing"}), 0U);
}

TEST_F(Promise, find_pages_through_everything_once) {
  for (std::uint64_t i = 1; i <= 25; ++i) ask(acquire(i, "DEFAULT:many:" + std::to_string(i)));
  std::vector<std::string> keys;
  Query query;
  query.limit = 10;
  int pages = 0;
  do {
    const auto page = store->find(query, soon());
    ASSERT_TRUE(page) << page.error().message;
    for (const auto& item : page->items) keys.push_back(item.key);
    query.after = page->next;
    ++pages;
  } while (!query.after.empty() && pages < 10);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(keys.size(), 25U);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

// Counts wake-ups and lets a test wait for one.
class Listener final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override {
    const std::lock_guard lock(mutex_);
    ++count_;
    for (const GrantId id : grants) grants_.push_back(id);
    signal_.notify_all();
  }
  bool woken() {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  int count_ = 0;
  std::vector<GrantId> grants_;
};

TEST_F(Promise, a_promoted_waiter_is_woken) {
  Listener listener;
  const auto watch = store->watch("process-2", listener);
  ask(acquire(1, kName));
  ask(acquire(2, kName, Mode::X, kQueueTtl));
  end(acquire(1, kName));
  EXPECT_TRUE(listener.woken());
}

TEST_F(Promise, the_holder_of_a_broken_lock_is_woken) {
  Listener listener;
  const auto watch = store->watch("process-1", listener);
  ask(acquire(1, kName));
  Request breaking;
  breaking.verb = Verb::break_;
  breaking.targets = {{kName, Mode::X}};
  ask(breaking);
  EXPECT_TRUE(listener.woken());
}

}  // namespace
}  // namespace baton::test
