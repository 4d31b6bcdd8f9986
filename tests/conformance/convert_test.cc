// What a client promises to who changes the mode of a lock: that its lease never claims more than
// the store keeps for it, whatever becomes of the request or of its reply.

#include <gtest/gtest.h>

#include <future>

#include "baton/observe.h"
#include "clients.h"
#include "core/trust.h"
#include "policy/apply_policy.h"

namespace baton::test {
namespace {

AcquireOptions held(Mode mode) { return {.mode = mode, .ttl = 60s}; }

class Convert : public Client {
 protected:
  [[nodiscard]] bool can_convert() const { return store->capabilities().convert; }

  static std::future<Result<void>> converting(Lease& lease, Mode mode, Millis wait = 0ms) {
    return std::async(std::launch::async,
                      [&lease, mode, wait] { return lease.convert(mode, wait); });
  }

  // What the store keeps for the lease.
  static HolderInfo kept(Replica& by, const Lease& lease, const LockName& name = kName) {
    const auto info = by.locks.get(name);
    for (const HolderInfo& holder : info ? info->holders : std::vector<HolderInfo>{}) {
      if (holder.grant == lease.grant()) return holder;
    }
    ADD_FAILURE() << "the store does not know the lease";
    return {};
  }
  static void expect_both_agree(Replica& by, const Lease& lease, Mode mode) {
    EXPECT_TRUE(lease.valid()) << lease.why_lost();
    EXPECT_EQ(lease.mode(), mode);
    EXPECT_EQ(kept(by, lease).mode, mode);
    EXPECT_EQ(kept(by, lease).token, lease.token());
  }

  void give_the_store(const std::string& yaml) {
    auto applied = std::async(std::launch::async, [&] {
      return policy::apply_policy(*store, parse_policy(yaml).value(), {.clock = &clock});
    });
    ASSERT_TRUE(arrives(applied));  // it may wait for acquires that are under way
    ASSERT_TRUE(applied.get());
  }
};

INSTANTIATE_TEST_SUITE_P(Wakeups, Convert, ::testing::Bool(), wakeups_name);

TEST_P(Convert, nobody_shares_a_lock_that_its_holder_believes_to_have_alone) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kExclusive));
  ASSERT_TRUE(lease);
  a.line->set(Line::loses_replies);
  auto down = converting(*lease, kShared);
  ASSERT_TRUE(eventually([&] { return b.locks.try_acquire(kName, held(kShared)).has_value(); }));
  EXPECT_EQ(lease->mode(), kShared) << "somebody else has been let in";
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(down));
  EXPECT_TRUE(down.get()) << "it asks again until it knows";
  expect_both_agree(b, *lease, kShared);
}

TEST_P(Convert, a_convert_down_whose_reply_is_lost_for_good_leaves_the_lower_mode) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kExclusive));
  ASSERT_TRUE(lease);
  a.line->set(Line::loses_replies);
  auto down = converting(*lease, kShared);
  ASSERT_TRUE(arrives(down));
  EXPECT_TRUE(down.get().error().in_doubt);
  EXPECT_EQ(lease->mode(), kShared);
  a.line->set(Line::good);
  expect_both_agree(b, *lease, kShared);
}

TEST_P(Convert, a_convert_down_that_never_arrived_is_made_up_for) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kExclusive));
  ASSERT_TRUE(lease);
  a.line->set(Line::loses_requests);
  auto down = converting(*lease, kShared);
  ASSERT_TRUE(arrives(down));
  EXPECT_TRUE(down.get().error().in_doubt);
  EXPECT_EQ(lease->mode(), kShared);
  EXPECT_EQ(kept(b, *lease).mode, kExclusive);
  a.line->set(Line::good);
  time->advance(store->capabilities().apply_limit);  // what was lost can no longer arrive
  EXPECT_TRUE(eventually([&] { return b.locks.try_acquire(kName, held(kShared)).has_value(); }));
  expect_both_agree(b, *lease, kShared);
}

TEST_P(Convert, a_convert_down_that_was_refused_changes_nothing) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kExclusive));
  ASSERT_TRUE(lease);
  for (const auto bad : {Line::refuses, Line::busy}) {
    a.line->set(bad);
    EXPECT_FALSE(lease->convert(kShared));
    expect_both_agree(b, *lease, kExclusive);
  }
}

TEST_P(Convert, a_convert_up_asks_again_until_it_knows) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease);
  const auto calls = a.line->calls();
  a.line->set(Line::loses_replies);
  auto up = converting(*lease, kExclusive, 40s);
  ASSERT_TRUE(eventually([&] { return a.line->calls() >= calls + 3; }));
  EXPECT_EQ(lease->mode(), kShared) << "nobody has said yes yet";
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(up));
  EXPECT_TRUE(up.get());
  expect_both_agree(b, *lease, kExclusive);
}

TEST_P(Convert, what_a_convert_up_in_doubt_has_taken_is_given_back) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease);
  a.line->set(Line::loses_replies);
  auto up = converting(*lease, kExclusive);
  ASSERT_TRUE(arrives(up));
  EXPECT_TRUE(up.get().error().in_doubt);
  EXPECT_EQ(lease->mode(), kShared);
  EXPECT_EQ(kept(b, *lease).mode, kExclusive);
  EXPECT_EQ(lease->convert(kExclusive).error().code, Code::busy)
      << "the last one is still in doubt";
  a.line->set(Line::good);
  time->advance(store->capabilities().apply_limit);  // what was lost can no longer arrive
  auto beside = b.locks.try_acquire(kName, held(kShared));
  ASSERT_TRUE(eventually([&] {
    if (!beside) beside = b.locks.try_acquire(kName, held(kShared));
    return beside.has_value() && lease->token() == kept(b, *lease).token;
  }));
  expect_both_agree(b, *lease, kShared);
  ASSERT_TRUE(beside->release());
  auto again = converting(*lease, kExclusive, 60s);
  ASSERT_TRUE(arrives(again));
  EXPECT_TRUE(again.get());
  expect_both_agree(b, *lease, kExclusive);
}

// A store that is asked twice for S by a holder of IX would give SIX first, and then S.
TEST_P(Convert, a_convert_sideways_is_repeated_without_harm) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kIntent));
  ASSERT_TRUE(lease);
  const auto calls = a.line->calls();
  a.line->set(Line::loses_replies);
  auto sideways = converting(*lease, kShared, 40s);
  ASSERT_TRUE(eventually([&] { return a.line->calls() >= calls + 3; }));
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(sideways));
  EXPECT_TRUE(sideways.get());
  expect_both_agree(b, *lease, Mode::SIX);
}

TEST_P(Convert, a_convert_waits_while_the_store_cannot_touch_the_name) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease);
  a.line->set(Line::busy);
  const auto calls = a.line->calls();
  auto up = converting(*lease, kExclusive, 60s);
  ASSERT_TRUE(eventually([&] { return a.line->calls() >= calls + 2; }));
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(up));
  EXPECT_TRUE(up.get());
}

TEST_P(Convert, one_lease_converts_once_at_a_time) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kUpdate));
  auto beside = b.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease && beside);
  auto up = converting(*lease, kExclusive, 60s);
  ASSERT_TRUE(eventually([&] { return how_many_wait(b, kName) == 1; }));
  EXPECT_EQ(lease->convert(kShared).error().code, Code::busy);
  EXPECT_EQ(lease->mode(), kUpdate);
  const auto waits = clock.waits();
  auto down = converting(*lease, kShared, 60s);
  ASSERT_TRUE(poll_until([&] { return clock.waits() > waits + 100; }));
  EXPECT_TRUE(beside->release());
  ASSERT_TRUE(arrives(up));
  EXPECT_TRUE(up.get());
  ASSERT_TRUE(arrives(down));
  EXPECT_TRUE(down.get());
  expect_both_agree(b, *lease, kShared);
}

TEST_P(Convert, a_release_ends_every_convert_that_waits) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kUpdate));
  auto beside = b.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease && beside);
  auto up = converting(*lease, kExclusive, 60s);
  ASSERT_TRUE(eventually([&] { return how_many_wait(b, kName) == 1; }));
  const auto waits = clock.waits();
  auto down = converting(*lease, kShared, 60s);
  ASSERT_TRUE(poll_until([&] { return clock.waits() > waits + 100; }));
  ASSERT_TRUE(lease->release());
  ASSERT_TRUE(poll_until([&] { return is_there(up) && is_there(down); }));
  EXPECT_FALSE(up.get());
  EXPECT_FALSE(down.get());
}

TEST_P(Convert, a_convert_that_waits_keeps_its_place) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  StoreCounters counters;
  auto line = std::make_shared<FlakyStore>(store);
  if (GetParam()) line->drop_wakeups();
  auto counted = observed(line, [&](const StoreCall& call) { counters.count(call); });
  auto locks = LockClient::make(counted, {.owner = "a", .clock = &clock}).value();
  auto b = replica("b");
  auto lease = locks.acquire(kName, {.mode = kShared, .ttl = 1500ms});
  auto beside = b.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease && beside);
  const auto asked = [&] { return counters.requests(Verb::convert, Outcome::queued); };
  // Slower than the machine's clock: a slow machine is not taken for a lost place or lease.
  const auto in_time = [&](auto condition) {
    return poll_until(
        [&] {
          if (condition()) return true;
          time->advance(1ms);
          return false;
        },
        120s, 5ms);
  };
  auto up = converting(*lease, kExclusive, 600s);
  ASSERT_TRUE(poll_until([&] { return asked() >= 1; }));
  const Instant begun = clock.now();
  while (clock.now() < begun + 2 * core::queue_ttl_for(lease->ttl())) {
    const auto before = asked();
    ASSERT_TRUE(in_time([&] { return asked() > before; }));
    ASSERT_EQ(how_many_wait(b, kName), 1U);
  }
  EXPECT_TRUE(beside->release());
  ASSERT_TRUE(in_time([&] { return is_there(up); }));
  EXPECT_TRUE(up.get());
}

// A cancel that came later would take the place of the next convert.
TEST_P(Convert, a_convert_that_gave_up_has_left_the_queue) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kShared));
  auto beside = b.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease && beside);
  auto left = std::async(std::launch::async, [&] {
    EXPECT_EQ(lease->convert(kExclusive, 1s).error().code, Code::timed_out);
    return how_many_wait(b, kName);
  });
  ASSERT_TRUE(arrives(left));
  EXPECT_EQ(left.get(), 0U);
}

TEST_P(Convert, a_convert_may_wait_for_ever) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, held(kShared));
  auto beside = b.locks.acquire(kName, held(kShared));
  ASSERT_TRUE(lease && beside);
  auto up = converting(*lease, kExclusive, Millis::max());
  ASSERT_TRUE(eventually([&] { return how_many_wait(b, kName) == 1; }));
  EXPECT_TRUE(beside->release());
  ASSERT_TRUE(arrives(up));
  EXPECT_TRUE(up.get());
}

TEST_P(Convert, a_policy_forbids_modes_to_who_converts_as_well) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  give_the_store("subjects: {report: {modes: [exclusive, update]}}");
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, held(kExclusive));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->convert(kShared).error().code, Code::denied);
  expect_both_agree(a, *lease, kExclusive);
  EXPECT_TRUE(lease->convert(kUpdate));
}

TEST_P(Convert, what_was_said_to_acquire_need_not_be_said_again) {
  if (!can_convert()) GTEST_SKIP() << "this store does not convert";
  give_the_store("subjects: {report: {required-metadata: [ticket], max-ttl: 2m}}");
  auto a = replica("a");
  AcquireOptions options = held(kExclusive);
  options.metadata = {{"ticket", "7"}};
  auto lease = a.locks.acquire(kName, options);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->convert(kShared));
}

TEST_P(Convert, the_locks_above_follow_the_mode_that_it_ends_in) {
  if (!can_convert() || store->capabilities().max_set < 2) {
    GTEST_SKIP() << "this store does not convert, or takes no sets";
  }
  give_the_store("subjects: {page: {parent: book}, book: {}}");
  auto a = replica("a");
  auto b = replica("b");
  const LockName book{.subject = "book", .resources = {"7"}};
  auto lease = a.locks.acquire({.subject = "page", .resources = {"7", "1"}}, held(kIntent));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->convert(kShared));
  EXPECT_EQ(lease->mode(), Mode::SIX);
  EXPECT_EQ(kept(b, *lease, book).mode, Mode::IX) << "SIX writes below";
  EXPECT_TRUE(lease->convert(kShared));
  EXPECT_EQ(lease->mode(), kShared);
  EXPECT_EQ(kept(b, *lease, book).mode, Mode::IS);
}

TEST_P(Convert, a_lease_tells_a_fence_of_every_name_and_ancestor_in_the_mode_held_there) {
  if (store->capabilities().max_set < 3) GTEST_SKIP() << "this store has no sets";
  give_the_store("subjects: {page: {parent: book}, book: {}}");
  auto a = replica("a");
  const LockName one{.subject = "page", .resources = {"7", "1"}};
  const LockName two{.subject = "page", .resources = {"7", "2"}};
  auto lease = a.locks.acquire_all({one, two}, held(kExclusive));
  if (!lease && lease.error().code == Code::unsupported) GTEST_SKIP() << lease.error().message;
  ASSERT_TRUE(lease) << lease.error().message;
  const auto tokens = lease->tokens();
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_EQ(tokens[0], (FenceToken{"DEFAULT:page:7:1", Mode::X, lease->token()}));
  EXPECT_EQ(tokens[1].key, "DEFAULT:page:7:2");
  EXPECT_EQ(tokens[1].mode, Mode::X);
  EXPECT_EQ(tokens[2].key, "DEFAULT:book:7");
  EXPECT_EQ(tokens[2].mode, Mode::IX);
  // The next holder of any of them is known by a higher token.
  ASSERT_TRUE(lease->release());
  const std::vector<LockName> names{one, two, {.subject = "book", .resources = {"7"}}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto next = a.locks.acquire(names[i], held(kExclusive));
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_TRUE(overtakes(next->tokens().front(), tokens[i])) << tokens[i].key;
  }
}

}  // namespace
}  // namespace baton::test
