// What a client promises to who asks for a lock, on whatever store the program was built for.

#include <gtest/gtest.h>

#include <future>

#include "clients.h"

namespace baton::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Wakeups, Client, ::testing::Bool(), wakeups_name);

TEST_P(Client, a_free_lock_is_granted_and_a_taken_one_is_busy_at_once) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->valid());
  EXPECT_GT(lease->token(), 0U);
  EXPECT_EQ(lease->key(), "DEFAULT:report:2026-11");
  const auto busy = b.locks.try_acquire(kName, kShort);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::busy);
  EXPECT_NE(busy.error().message.find("held by a"), std::string::npos) << busy.error().message;
  EXPECT_TRUE(lease->release());
  EXPECT_FALSE(lease->valid());
  EXPECT_TRUE(lease->lost().stop_requested());
  EXPECT_TRUE(b.locks.try_acquire(kName, kShort));
}

TEST_P(Client, a_lease_is_released_at_the_end_of_its_scope) {
  auto a = replica("a");
  {
    auto lease = a.locks.acquire(kName, kShort);
    ASSERT_TRUE(lease);
  }
  EXPECT_TRUE(a.locks.try_acquire(kName, kShort));
}

TEST_P(Client, two_threads_of_one_process_exclude_each_other) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease);
  EXPECT_EQ(a.locks.try_acquire(kName, kShort).error().code, Code::busy);
}

TEST_P(Client, an_acquire_in_doubt_is_undone) {
  auto a = replica("a");
  auto b = replica("b");
  a.line->set(Line::loses_replies);
  const auto doubtful = a.locks.try_acquire(kName, {.ttl = 60s});
  ASSERT_FALSE(doubtful);
  EXPECT_EQ(doubtful.error().code, Code::unavailable);
  EXPECT_TRUE(doubtful.error().in_doubt);
  a.line->set(Line::good);
  expect_free_before(60s, b.locks);
}

TEST_P(Client, a_store_that_takes_no_sets_says_so) {
  if (store->capabilities().max_set >= 2) GTEST_SKIP() << "this store takes sets";
  auto a = replica("a");
  const LockName other{.subject = "report", .resources = {"2026-12"}};
  EXPECT_EQ(a.locks.acquire_all({kName, other}, kShort).error().code, Code::unsupported);
}

TEST_P(Client, a_set_is_taken_and_released_whole) {
  if (store->capabilities().max_set < 2) GTEST_SKIP() << "this store takes no sets";
  auto a = replica("a");
  auto b = replica("b");
  const LockName other{.subject = "report", .resources = {"2026-12"}};
  auto both = a.locks.acquire_all({kName, other}, kShort);
  ASSERT_TRUE(both);
  const auto tokens = both->tokens();
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[0], (FenceToken{both->key(), Mode::X, both->token()}));
  EXPECT_EQ(tokens[1].key, "DEFAULT:report:2026-12");
  EXPECT_GT(tokens[1].token, 0U);
  EXPECT_EQ(b.locks.try_acquire(other, kShort).error().code, Code::busy);
  EXPECT_TRUE(both->release());
  EXPECT_TRUE(b.locks.try_acquire(other, kShort));
}

TEST_P(Client, with_lock_gives_back_what_the_function_returns) {
  auto a = replica("a");
  const auto result = a.locks.with_lock(kName, kShort, [](Lease& lease) { return lease.token(); });
  ASSERT_TRUE(result);
  EXPECT_GT(*result, 0U);
  EXPECT_TRUE(a.locks.with_lock(kName, kShort, [](Lease&) {}));
}

TEST_P(Client, bad_requests_are_refused_before_the_store_is_asked) {
  auto a = replica("a");
  const auto calls = a.line->calls();
  EXPECT_EQ(a.locks.acquire(kName, {.ttl = 0s}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(kName, {.ttl = -1s}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(kName, {.ttl = 25h}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(kName, {.wait = 25h}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = ""}, {}).error().code, Code::bad_name);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = "a\n"}, {}).error().code, Code::bad_name);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = std::string(300, 'x')}, {}).error().code,
            Code::bad_name);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = "schema", .region = "BATON"}, {}).error().code,
            Code::bad_name);
  EXPECT_EQ(a.line->calls(), calls);
}

TEST_P(Client, a_client_of_another_schema_version_is_denied_and_a_new_one_is_not) {
  auto old = replica("old");
  Request request = acquire(900, std::string(core::kSchemaKey));
  request.change = {.ordinal = 1, .text = to_stored(Policy{.version = 1})};
  ASSERT_TRUE(store->apply({&request, 1}, soon()));
  EXPECT_EQ(old.locks.try_acquire(kName, kShort).error().code, Code::denied);
  auto current = replica("new");
  EXPECT_TRUE(current.locks.try_acquire(kName, kShort));
}

TEST_P(Client, the_last_reference_may_go_on_the_clients_own_thread) {
  std::promise<void> done;
  {
    auto locks = std::make_shared<LockClient>(
        LockClient::make(store, {.owner = "a", .clock = &clock}).value());
    auto& client = *locks;
    client.acquire_async({kName}, kShort, [&done, locks](Result<Lease> lease) mutable {
      EXPECT_TRUE(lease) << lease.error().message;
      locks.reset();
      done.set_value();
    });
  }
  auto finished = done.get_future();
  EXPECT_TRUE(arrives(finished));
}

}  // namespace
}  // namespace baton::test
