// Replicas that divide a set on one memory store, in time that only the test moves.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "baton/partitions.h"
#include "conformance/replicas.h"
#include "store/memory/memory_store.h"
#include "support/no_threads.h"

namespace baton::test {
namespace {

constexpr const char* kSet = "relay/shop";

// Counts the round trips.
class Counted final : public LockStore {
 public:
  explicit Counted(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    ++applies;
    return inner_->apply(batch, deadline);
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    ++finds;
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }
  std::atomic<int> applies{0};
  std::atomic<int> finds{0};

 private:
  std::shared_ptr<LockStore> inner_;
};

class PartitionsTest : public Replicas {
 protected:
  PartitionsTest()
      : Replicas([](std::shared_ptr<ManualTime> now) {
          return store::make_memory_store_at([now = std::move(now)] { return now->now(); });
        }) {}

  // Who works on what, for all replicas: two at work on one partition is a failure, unless a test
  // has work that does not listen.
  struct Board {
    std::mutex mutex;
    std::map<std::size_t, int> at_work;
    std::map<std::size_t, Token> tokens;
    int starts = 0;
    std::atomic<bool> overlap = false;

    void begin(const Partition& partition) {
      const std::lock_guard lock(mutex);
      ++starts;
      if (++at_work[partition.number()] > 1) overlap = true;
      EXPECT_GT(partition.token(), tokens[partition.number()]);
      tokens[partition.number()] = partition.token();
    }
    void end(const Partition& partition) {
      const std::lock_guard lock(mutex);
      --at_work[partition.number()];
    }
    int started() {
      const std::lock_guard lock(mutex);
      return starts;
    }
  };
  Board board;

  Partitions::Work listening() {
    return [this](Partition& partition, const std::stop_token& stop) {
      board.begin(partition);
      std::mutex mutex;
      std::condition_variable_any signal;
      std::unique_lock lock(mutex);
      signal.wait(lock, stop, [] { return false; });
      board.end(partition);
    };
  }

  struct Member {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
    std::mutex mutex;
    std::vector<Error> errors;
    std::vector<PartitionOverrun> overruns;
    Partitions partitions;

    Member(Replica through, std::size_t count, PartitionOptions options)
        : line(std::move(through.line)),
          locks(std::move(through.locks)),
          partitions(locks, kSet, count, hooked(std::move(options))) {}

    PartitionOptions hooked(PartitionOptions options) {
      options.on_error = [this](const Error& error) {
        const std::lock_guard lock(mutex);
        errors.push_back(error);
      };
      options.on_overrun = [this](const PartitionOverrun& overrun) {
        const std::lock_guard lock(mutex);
        overruns.push_back(overrun);
      };
      return options;
    }
    std::size_t owned() const { return partitions.owned().size(); }
    std::string last_error() {
      const std::lock_guard lock(mutex);
      return errors.empty() ? std::string() : errors.back().message;
    }
  };

  std::unique_ptr<Member> member(const std::string& node, std::size_t count = 8,
                                 PartitionOptions options = {}) {
    options.clock = &clock;
    return std::make_unique<Member>(replica(node), count, std::move(options));
  }
  std::unique_ptr<Member> started(const std::string& node, std::size_t count = 8,
                                  PartitionOptions options = {}) {
    auto one = member(node, count, std::move(options));
    EXPECT_TRUE(one->partitions.start(listening()));
    return one;
  }

  // Stops while time goes on, which the drain of others may need.
  void stop(Member& one) {
    std::atomic<bool> over = false;
    std::jthread thread([&] {
      one.partitions.stop();
      over = true;
    });
    EXPECT_TRUE(eventually([&] { return over.load(); }));
  }
};

TEST_F(PartitionsTest, one_replica_owns_all_and_stop_gives_all_back) {
  auto a = started("a");
  EXPECT_TRUE(eventually([&] { return a->owned() == 8; }));
  stop(*a);
  a->partitions.stop();
  EXPECT_EQ(a->owned(), 0U);
  EXPECT_TRUE(partition_sets(a->locks).value().empty());
  EXPECT_FALSE(board.overlap);
}

TEST_F(PartitionsTest, a_join_moves_the_share_of_the_newcomer_and_then_nothing_moves) {
  auto a = started("a");
  ASSERT_TRUE(eventually([&] { return a->owned() == 8; }));
  auto b = started("b");
  // Work begins on a thread of its own, a moment after the partition is owned.
  ASSERT_TRUE(
      eventually([&] { return a->owned() == 4 && b->owned() == 4 && board.started() >= 12; }));
  EXPECT_EQ(board.started(), 12);
  auto c = started("c");
  ASSERT_TRUE(eventually([&] {
    return a->owned() == 3 && b->owned() == 3 && c->owned() == 2 && board.started() >= 14;
  }));
  EXPECT_EQ(board.started(), 14);
  const auto until = time->now() + 20s;
  ASSERT_TRUE(eventually([&] { return time->now() > until; }));
  EXPECT_EQ(board.started(), 14) << "it was balanced";
  EXPECT_FALSE(board.overlap);
}

TEST_F(PartitionsTest, a_leave_moves_only_what_the_leaver_had) {
  auto a = started("a");
  auto b = started("b");
  auto c = started("c");
  ASSERT_TRUE(eventually([&] { return a->owned() == 3 && b->owned() == 3 && c->owned() == 2; }));
  const auto before_a = a->partitions.owned();
  const auto before_c = c->partitions.owned();
  stop(*b);
  ASSERT_TRUE(eventually([&] { return a->owned() == 4 && c->owned() == 4; }));
  const auto kept = [](const auto& now, const auto& before) {
    return std::includes(now.begin(), now.end(), before.begin(), before.end());
  };
  EXPECT_TRUE(kept(a->partitions.owned(), before_a));
  EXPECT_TRUE(kept(c->partitions.owned(), before_c));
  EXPECT_FALSE(board.overlap);
}

TEST_F(PartitionsTest, the_partitions_of_a_dead_replica_move_within_its_ttl_and_two_seconds) {
  auto a = started("a", 8, {.ttl = 5s});
  auto b = started("b", 8, {.ttl = 5s});
  ASSERT_TRUE(eventually([&] { return a->owned() == 4 && b->owned() == 4; }));
  b->line->set(FlakyStore::Line::refuses);
  const auto cut = time->now();
  ASSERT_TRUE(eventually([&] { return a->owned() == 8; }));
  // Steps of 5 ms that real threads follow: what they take is not part of it.
  EXPECT_LT(time->now() - cut, 7s + 1s);
  EXPECT_TRUE(eventually([&] { return b->owned() == 0; })) << "it knew before";
  b->line->set(FlakyStore::Line::good);
  EXPECT_TRUE(eventually([&] { return a->owned() == 4 && b->owned() == 4; })) << "and is back";
  EXPECT_FALSE(board.overlap);
}

TEST_F(PartitionsTest, what_a_stuck_member_leaves_free_is_taken_by_another) {
  auto stuck = replica("a");
  const LockName registration{.subject = "partition-member", .resources = {"relay", "shop", "a"}};
  auto lease = stuck.locks.try_acquire(registration, {.ttl = 1h}).value();
  auto b = started("b");
  EXPECT_TRUE(eventually([&] { return b->owned() == 8; }));
}

TEST_F(PartitionsTest, no_wake_up_is_needed) {
  const auto deaf = [this](const std::string& node) {
    PartitionOptions options;
    options.clock = &clock;
    auto one = std::make_unique<Member>(replica(node, true), 8, std::move(options));
    EXPECT_TRUE(one->partitions.start(listening()));
    return one;
  };
  auto a = deaf("a");
  ASSERT_TRUE(eventually([&] { return a->owned() == 8; }));
  auto b = deaf("b");
  EXPECT_TRUE(eventually([&] { return a->owned() == 4 && b->owned() == 4; }));
}

TEST_F(PartitionsTest, work_that_ignores_its_stop_token_loses_the_partition_after_grace_and_ttl) {
  std::atomic<bool> let_go = false;
  auto a = member("a", 2, {.ttl = 2s, .grace = 3s});
  ASSERT_TRUE(a->partitions.start([&](Partition&, const std::stop_token&) {
    while (!let_go) std::this_thread::sleep_for(1ms);
  }));
  ASSERT_TRUE(eventually([&] { return a->owned() == 2; }));
  auto b = started("b", 2, {.ttl = 2s});
  EXPECT_TRUE(eventually([&] { return b->owned() == 1; })) << "while the work of a goes on";
  {
    const std::lock_guard lock(a->mutex);
    ASSERT_EQ(a->overruns.size(), 1U);
    EXPECT_GE(a->overruns[0].since_stop, Millis(3s));
    EXPECT_EQ(a->overruns[0].why_ending, "handed over to b");
  }
  let_go = true;
  EXPECT_TRUE(eventually([&] { return a->owned() == 1 && b->owned() == 1; }));
  stop(*b);
  stop(*a);
}

TEST_F(PartitionsTest, a_replica_whose_work_fails_leaves_it_to_the_others) {
  auto a = member("a", 4);
  ASSERT_TRUE(a->partitions.start(
      [](Partition&, const std::stop_token&) { throw std::runtime_error("no database"); }));
  ASSERT_TRUE(eventually([&] { return !a->last_error().empty(); }));
  EXPECT_NE(a->last_error().find("no database"), std::string::npos);
  auto b = started("b", 4);
  EXPECT_TRUE(eventually([&] { return b->owned() == 4; }));
}

TEST_F(PartitionsTest, a_replica_without_a_thread_for_the_work_leaves_it_to_the_others) {
  auto a = member("a", 2);
  auto b = member("b", 2);
  // So that the client has its thread for requests.
  std::promise<void> asked;
  a->locks.acquire_async({LockName{.subject = "other"}}, {},
                         [&](const Result<Lease>&) { asked.set_value(); });
  ASSERT_TRUE(arrives(asked.get_future()));
  std::optional<NoThreads> none;
  std::stop_source stop;
  bool both_refused = false;
  std::atomic<bool> over = false;
  // Runs here, as a thread could not be started for it.
  std::jthread mover([&] {
    both_refused = eventually([&] {
      const std::lock_guard lock(a->mutex);
      return a->errors.size() >= 2;
    });
    none.reset();
    EXPECT_TRUE(b->partitions.start(listening()));
    EXPECT_TRUE(eventually([&] { return b->owned() >= 1; }));
    stop.request_stop();
    EXPECT_TRUE(eventually([&] { return over.load(); }));
  });
  none.emplace();
  EXPECT_TRUE(a->partitions.run(listening(), stop.get_token()));
  over = true;
  mover.join();
  EXPECT_TRUE(both_refused);
  EXPECT_NE(a->last_error().find("no thread could be started for it"), std::string::npos)
      << a->last_error();
  EXPECT_TRUE(eventually([&] { return b->owned() == 2; }));
  EXPECT_FALSE(board.overlap);
}

TEST_F(PartitionsTest, a_start_without_a_thread_is_an_error_and_may_be_repeated) {
  auto a = member("a", 2);
  {
    const NoThreads none;
    const auto started = a->partitions.start(listening());
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::unavailable);
    EXPECT_TRUE(started.error().retryable);
  }
  EXPECT_TRUE(a->partitions.start(listening()));
  EXPECT_TRUE(eventually([&] { return a->owned() == 2; }));
}

TEST_F(PartitionsTest, another_count_waits_until_the_last_owner_under_the_old_one_has_gone) {
  auto a = started("a", 8);
  ASSERT_TRUE(eventually([&] { return a->owned() == 8; }));
  auto b = started("b", 16);
  ASSERT_TRUE(eventually([&] { return !b->last_error().empty(); }));
  EXPECT_NE(b->last_error().find("'a' divides 'relay/shop' by 8"), std::string::npos)
      << b->last_error();
  const auto until = time->now() + 5s;
  ASSERT_TRUE(eventually([&] { return time->now() > until; }));
  EXPECT_EQ(a->owned(), 8U);
  EXPECT_EQ(b->owned(), 0U);
  stop(*a);
  EXPECT_TRUE(eventually([&] { return b->owned() == 16; }));
}

TEST_F(PartitionsTest, two_of_one_name_are_never_members_together) {
  auto first = started("a");
  ASSERT_TRUE(eventually([&] { return first->owned() == 8; }));
  auto second = started("a");
  ASSERT_TRUE(eventually([&] { return !second->last_error().empty(); }));
  EXPECT_EQ(second->owned(), 0U);
  stop(*first);
  EXPECT_TRUE(eventually([&] { return second->owned() == 8; }));
}

TEST_F(PartitionsTest, stop_inside_the_work_only_fires_the_stop_tokens) {
  auto a = member("a", 3);
  ASSERT_TRUE(a->partitions.start([&](Partition&, const std::stop_token& stopped) {
    a->partitions.stop();
    EXPECT_TRUE(poll_until([&] { return stopped.stop_requested(); }));
  }));
  std::jthread thread([&] { a->partitions.stop(); });
  EXPECT_TRUE(eventually([&] { return partition_sets(a->locks).value().empty(); }));
}

TEST_F(PartitionsTest, run_ends_by_its_own_stop_token) {
  auto a = member("a", 3);
  std::stop_source end;
  std::atomic<bool> over = false;
  std::jthread thread([&] {
    EXPECT_TRUE(a->partitions.run(listening(), end.get_token()));
    over = true;
  });
  ASSERT_TRUE(eventually([&] { return a->owned() == 3; }));
  end.request_stop();
  EXPECT_TRUE(eventually([&] { return over.load(); }));
}

TEST_F(PartitionsTest, bad_input_is_an_error_at_once) {
  auto locks = replica("a").locks;
  const auto code = [&](std::string_view set, std::size_t count, PartitionOptions options = {}) {
    return Partitions(locks, set, count, std::move(options)).start(listening()).error().code;
  };
  EXPECT_EQ(code("", 4), Code::bad_name);
  EXPECT_EQ(code("a//b", 4), Code::bad_name);
  EXPECT_EQ(code(std::string(300, 'x'), 4), Code::bad_name);
  EXPECT_EQ(code("set", 0), Code::bad_request);
  EXPECT_EQ(code("set", kMaxPartitions + 1), Code::bad_request);
  EXPECT_EQ(code("set", 4, {.grace = Millis(-1)}), Code::bad_request);
  EXPECT_EQ(code("set", 4, {.look_interval = Millis(0)}), Code::bad_request);
  Partitions short_ttl(locks, "set", 4, {.ttl = Millis(1), .clock = &clock});
  EXPECT_EQ(short_ttl.run(listening()).error().code, Code::bad_request);
}

TEST_F(PartitionsTest, an_idle_member_makes_two_finds_a_second_whatever_the_count) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{64}}) {
    auto counted = std::make_shared<Counted>(store);
    auto locks = LockClient::make(counted, {.owner = "a", .clock = &clock}).value();
    Partitions all(locks, "idle/" + std::to_string(count), count, {.ttl = 9s, .clock = &clock});
    ASSERT_TRUE(all.start(listening()));
    // Time stands still meanwhile, so that all leases fall due together.
    ASSERT_TRUE(poll_until([&] { return all.owned().size() == count; }));
    const int finds = counted->finds;
    const int applies = counted->applies;
    const auto until = time->now() + 30s;
    ASSERT_TRUE(eventually([&] { return time->now() > until; }));
    EXPECT_LE(counted->finds - finds, 2 * 31);
    EXPECT_GT(counted->finds - finds, 2 * 10);
    // Ten renewals in 30 s, each in one batch, or in two where they fall due apart.
    EXPECT_LE(counted->applies - applies, 2 * 11);
    std::jthread thread([&] { all.stop(); });
    EXPECT_TRUE(eventually([&] { return all.owned().empty(); }));
  }
}

TEST_F(PartitionsTest, sets_are_listed_apart_with_quotas_owners_and_who_waits) {
  auto a = started("a", 3);
  ASSERT_TRUE(eventually([&] { return a->owned() == 3; }));
  auto inner = Partitions(a->locks, "relay", 2, {.clock = &clock});
  ASSERT_TRUE(inner.start(listening()));
  ASSERT_TRUE(eventually([&] { return inner.owned().size() == 2; }));
  const auto all = partition_sets(a->locks).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "relay");
  EXPECT_EQ(all[1].name, kSet);
  const auto one = partition_sets(a->locks, "relay").value();
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].count, 2U);
  ASSERT_EQ(one[0].members.size(), 1U);
  EXPECT_EQ(one[0].members[0].quota, 2U);
  EXPECT_EQ(one[0].members[0].owned, 2U);
  ASSERT_EQ(one[0].partitions.size(), 2U);
  EXPECT_EQ(one[0].partitions[1].node, "a");
  EXPECT_GT(one[0].partitions[1].token, 0U);
  std::jthread thread([&] { inner.stop(); });
  EXPECT_TRUE(eventually([&] { return inner.owned().empty(); }));
}

}  // namespace
}  // namespace baton::test
