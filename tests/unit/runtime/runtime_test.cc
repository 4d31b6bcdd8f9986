#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "baton/locks.h"
#include "baton/memory_store.h"
#include "baton/observe.h"
#include "runtime/async_batcher.h"
#include "runtime/batcher.h"
#include "support/no_threads.h"
#include "support/wait.h"

namespace baton {
namespace {

using namespace std::chrono_literals;

TEST(Observe, counts_and_describes_every_call_and_changes_none) {
  StoreCounters counters;
  std::vector<std::string> lines;
  auto store = observed(make_memory_store(), [&](const StoreCall& call) {
    counters.count(call);
    lines.push_back(describe(call));
  });
  auto locks = LockClient::make(store).value();
  {
    auto lease = locks.acquire({.subject = "job"});
    ASSERT_TRUE(lease);
    EXPECT_FALSE(locks.try_acquire({.subject = "job"}));
  }
  EXPECT_EQ(counters.requests(Verb::acquire, Outcome::granted), 1U);
  EXPECT_EQ(counters.requests(Verb::acquire, Outcome::busy), 1U);
  EXPECT_EQ(counters.requests(Verb::release, Outcome::done), 1U);
  EXPECT_EQ(counters.failed_calls(), 0U);
  ASSERT_GE(lines.size(), 2U);
  EXPECT_NE(lines[1].find("acquire DEFAULT:job=X granted"), std::string::npos) << lines[1];
}

TEST(AsyncAcquire, without_a_thread_for_it_is_an_error_that_a_thread_of_the_client_tells) {
  auto locks = LockClient::make(make_memory_store()).value();
  std::promise<std::pair<Error, std::thread::id>> told;
  const auto tell = [&](const Result<Lease>& lease) {
    told.set_value(
        {lease ? Error{.message = "granted"} : lease.error(), std::this_thread::get_id()});
  };
  {
    const test::NoThreads none;
    locks.acquire_async({LockName{.subject = "job"}}, {}, tell);
    const auto [error, thread] = told.get_future().get();
    EXPECT_EQ(error.code, Code::unavailable) << error.message;
    EXPECT_TRUE(error.retryable);
    EXPECT_FALSE(error.in_doubt);
    EXPECT_NE(thread, std::this_thread::get_id());
  }
  EXPECT_TRUE(locks.try_acquire({.subject = "job"})) << "nothing was asked for";
}

TEST(AsyncAcquire, that_may_wait_is_granted_though_no_thread_could_be_started_for_it) {
  auto locks = LockClient::make(make_memory_store()).value();
  std::promise<bool> granted;
  const test::NoThreads none;
  locks.acquire_async({LockName{.subject = "job"}}, {.wait = 60s},
                      [&](const Result<Lease>& lease) { granted.set_value(lease.has_value()); });
  EXPECT_TRUE(granted.get_future().get());
}

// Grants, and says so when the lease has ended: the first `stalls` times that it is asked.
class StallingStore final : public LockStore {
 public:
  explicit StallingStore(int stalls) : stalls_(stalls) {}

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    const Instant asked = BootClock::now();
    auto replies = inner_->apply(batch, deadline);
    if (batch.front().verb != Verb::acquire) return replies;
    ++acquires;
    if (stalls_-- > 0) {
      std::this_thread::sleep_until(asked + batch.front().ttl + 1ms);
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

  std::atomic<int> acquires{0};

 private:
  std::atomic<int> stalls_;
  const std::shared_ptr<LockStore> inner_ = make_memory_store();
};

TEST(Locks, a_wait_outlasts_a_store_that_stalls_for_longer_than_the_ttl) {
  const auto store = std::make_shared<StallingStore>(2);
  auto locks = LockClient::make(store).value();
  const auto lease = locks.acquire({.subject = "job"}, {.ttl = 1s, .wait = 60s});
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_GE(store->acquires, 3) << "those that came too late were asked for anew";
}

TEST(Locks, a_wait_by_callback_outlasts_a_store_that_stalls_for_longer_than_the_ttl) {
  const auto store = std::make_shared<StallingStore>(2);
  auto locks = LockClient::make(store).value();
  std::promise<Result<Lease>> promise;
  locks.acquire_async(std::vector{LockName{.subject = "job"}}, {.ttl = 1s, .wait = 60s},
                      [&](Result<Lease> got) { promise.set_value(std::move(got)); });
  auto future = promise.get_future();
  ASSERT_EQ(future.wait_for(test::patience), std::future_status::ready);
  const auto lease = future.get();
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_GE(store->acquires, 3);
}

TEST(Locks, what_came_too_late_is_not_asked_for_anew_without_a_wait_or_with_a_note) {
  for (const AcquireOptions& options :
       {AcquireOptions{.ttl = 1s},
        AcquireOptions{.ttl = 1s, .wait = 60s, .note = {.ordinal = 1}}}) {
    const auto store = std::make_shared<StallingStore>(1);
    auto locks = LockClient::make(store).value();
    const auto lease = locks.acquire({.subject = "job"}, options);
    ASSERT_FALSE(lease);
    EXPECT_EQ(lease.error().code, Code::unavailable);
    EXPECT_TRUE(lease.error().in_doubt);
    EXPECT_EQ(store->acquires, 1);
  }
}

// Notes the earliest time by which it was to answer.
class HurriedStore final : public LockStore {
 public:
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    note(deadline);
    return inner_->apply(batch, deadline);
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    note(deadline);
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

  std::atomic<Instant> earliest = Instant::max();

 private:
  void note(Deadline deadline) { earliest = std::min(earliest.load(), deadline); }

  const std::shared_ptr<LockStore> inner_ = make_memory_store();
};

TEST(Locks, for_ever_is_not_at_once) {
  const auto store = std::make_shared<HurriedStore>();
  auto locks = LockClient::make(store).value();
  auto lease = locks.acquire({.subject = "job"});
  ASSERT_TRUE(lease);
  store->earliest = Instant::max();
  const Instant before = BootClock::now();
  EXPECT_TRUE(locks.get({.subject = "job"}, Millis::max()));
  EXPECT_TRUE(locks.find({}, Millis::max()));
  EXPECT_TRUE(lease->set_note({.text = "here"}, Millis::max()));
  EXPECT_TRUE(lease->release({.timeout = Millis::max()}));
  EXPECT_GT(store->earliest.load(), before);
}

// Answers only when told to, so that callers gather.
class GatedStore final : public LockStore {
 public:
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline) override {
    last_verb = batch.front().verb;
    ++calls;
    largest = std::max(largest.load(), batch.size());
    gate.wait();
    std::vector<Reply> replies(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      replies[i].outcome = Outcome::granted;
      replies[i].tokens = {batch[i].grant.low};
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query&, Deadline) override { return Page<LockInfo>{}; }
  std::unique_ptr<Watch> watch(const std::string&, WakeSink&) override { return nullptr; }
  [[nodiscard]] Capabilities capabilities() const override { return {}; }

  std::latch gate{1};
  std::atomic<Verb> last_verb{Verb::get};
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> largest{0};
};

Request numbered(std::uint64_t number) {
  Request request;
  request.verb = Verb::acquire;
  request.grant = {0, number};
  request.targets = {{"DEFAULT:job", Mode::X}};
  return request;
}

TEST(Batcher, callers_gather_while_a_batch_is_in_flight_and_each_gets_its_own_reply) {
  GatedStore store;
  runtime::Batcher batcher(store, system_clock(), {});
  std::atomic<int> right = 0;
  std::vector<std::jthread> callers;
  for (std::uint64_t i = 1; i <= 50; ++i) {
    callers.emplace_back([&, i] {
      Request request;
      request.grant = {0, i};
      Instant sent;
      const auto reply = batcher.submit(request, BootClock::now() + 30s, sent);
      if (reply && reply->tokens.at(0) == i) ++right;
    });
  }
  // The first is in flight; the gate opens only when somebody is, so the others may gather.
  while (store.calls == 0) std::this_thread::yield();
  store.gate.count_down();
  callers.clear();
  EXPECT_EQ(right, 50);
  EXPECT_LE(store.calls, 50U);
}

// Lets a first request out at once and two more only later. Gives when those went, if they did
// gather meanwhile.
std::optional<std::vector<Instant>> sent_after_gathering(Instant asked, Instant went) {
  class GivenClock final : public Clock {
   public:
    explicit GivenClock(Instant now) : now_(now) {}
    [[nodiscard]] Instant now() const override { return now_; }
    void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
              Instant) override {
      signal.wait_for(lock, 1ms);
    }

   private:
    const Instant now_;
  } clock(went);
  GatedStore store;
  runtime::Batcher batcher(store, clock, {});
  std::vector<Instant> sent(3, asked);
  const auto submit = [&](std::size_t i) {
    Request request = numbered(i);
    (void)batcher.submit(request, asked + 30s, sent[i]);
  };
  {
    std::jthread first(submit, 0);
    while (store.calls == 0) std::this_thread::yield();
    std::latch started(2);
    std::vector<std::jthread> others;
    for (const std::size_t i : {1, 2}) {
      others.emplace_back([&, i] {
        started.count_down();
        submit(i);
      });
    }
    started.wait();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    store.gate.count_down();
  }
  if (store.largest < 2) return std::nullopt;
  return sent;
}

TEST(Batcher, a_request_that_had_to_gather_was_sent_when_it_went) {
  const Instant asked{1s};
  const Instant went{4s};
  const auto deadline = BootClock::now() + 60s;
  std::optional<std::vector<Instant>> sent;
  while (!sent && BootClock::now() < deadline) sent = sent_after_gathering(asked, went);
  EXPECT_EQ(sent, (std::vector<Instant>{asked, went, went}));
}

// Answers as many calls as it is told to, and lets the others wait. Remembers what it was asked.
class HungStore final : public LockStore {
 public:
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    {
      const std::lock_guard lock(mutex_);
      for (const Request& request : batch) asked_.push_back(request.grant.low);
      deadlines_.push_back(deadline);
    }
    answers.acquire();
    std::vector<Reply> replies(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) replies[i].tokens = {batch[i].grant.low};
    return replies;
  }
  Result<Page<LockInfo>> find(const Query&, Deadline) override { return Page<LockInfo>{}; }
  std::unique_ptr<Watch> watch(const std::string&, WakeSink&) override { return nullptr; }
  [[nodiscard]] Capabilities capabilities() const override { return {}; }

  std::vector<std::uint64_t> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::vector<Deadline> deadlines() {
    const std::lock_guard lock(mutex_);
    return deadlines_;
  }
  std::counting_semaphore<> answers{0};

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> asked_;
  std::vector<Deadline> deadlines_;
};

// Knows which threads have looked at it: a caller of the batcher does so first when it waits.
class SeenClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    const std::lock_guard lock(mutex_);
    seen_.insert(std::this_thread::get_id());
    return now_;
  }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal, Instant) override {
    signal.wait_for(lock, 1ms);
  }
  void advance(Millis by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
  }
  bool seen_by(std::thread::id thread) const {
    const std::lock_guard lock(mutex_);
    return seen_.contains(thread);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> seen_;
  Instant now_{1000s};
};

class BatcherDeadline : public ::testing::Test {
 protected:
  struct Caller {
    std::optional<Result<Reply>> reply;
    std::atomic<bool> answered = false;
    std::jthread thread;
    Result<Reply>& get() {
      thread.join();
      return *reply;
    }
  };
  std::unique_ptr<Caller> submit(std::uint64_t number, Millis timeout) {
    auto caller = std::make_unique<Caller>();
    const Deadline deadline = clock.now() + timeout;
    caller->thread = std::jthread([this, number, deadline, caller = caller.get()] {
      Request request = numbered(number);
      Instant sent;
      caller->reply.emplace(batcher.submit(request, deadline, sent));
      EXPECT_EQ(request.grant.low, number) << "it is back as it was";
      EXPECT_EQ(request.verb, Verb::acquire);
      EXPECT_EQ(request.targets.size(), 1U);
      caller->answered = true;
    });
    return caller;
  }
  // One is in the store; what comes now gathers.
  std::unique_ptr<Caller> hang() {
    auto first = submit(1, 600s);
    EXPECT_TRUE(test::poll_until([&] { return store.asked().size() == 1; }));
    return first;
  }
  std::unique_ptr<Caller> gathered(std::uint64_t number, Millis timeout) {
    auto caller = submit(number, timeout);
    EXPECT_TRUE(test::poll_until([&] { return clock.seen_by(caller->thread.get_id()); }));
    return caller;
  }

  SeenClock clock;
  HungStore store;
  runtime::Batcher batcher{store, clock, {}};
};

TEST_F(BatcherDeadline, who_gathers_leaves_in_time_and_is_never_sent) {
  auto first = hang();
  auto leader = gathered(2, 500ms);
  auto follower = gathered(3, 300ms);
  auto patient = gathered(4, 600s);
  clock.advance(400ms);
  const auto& left = follower->get();
  ASSERT_FALSE(left);
  EXPECT_FALSE(left.error().in_doubt);
  EXPECT_FALSE(leader->answered);
  clock.advance(200ms);
  EXPECT_FALSE(leader->get());
  EXPECT_FALSE(patient->answered);
  store.answers.release(2);
  EXPECT_TRUE(first->get());
  const auto& reply = patient->get();
  ASSERT_TRUE(reply) << "those that are left are sent without a leader";
  EXPECT_EQ(reply->tokens.at(0), 4U);
  EXPECT_EQ(store.asked(), (std::vector<std::uint64_t>{1, 4}));
}

TEST_F(BatcherDeadline, a_batch_is_sent_by_one_who_has_the_time) {
  auto first = hang();
  const Deadline longest = clock.now() + 60s;
  auto short_of_time = gathered(2, 500ms);
  auto patient = gathered(3, 60s);
  store.answers.release(2);
  EXPECT_TRUE(first->get());
  EXPECT_TRUE(short_of_time->get());
  EXPECT_TRUE(patient->get());
  EXPECT_EQ(store.deadlines().back(), longest);
  EXPECT_EQ(store.asked().size(), 3U);
}

TEST_F(BatcherDeadline, who_leaves_a_batch_that_is_sent_is_in_doubt) {
  auto first = hang();
  auto sender = gathered(2, 60s);
  auto follower = gathered(3, 40s);
  store.answers.release();
  EXPECT_TRUE(first->get());
  ASSERT_TRUE(test::poll_until([&] { return store.asked().size() == 3; }));
  clock.advance(50s);
  const auto& left = follower->get();
  ASSERT_FALSE(left);
  EXPECT_TRUE(left.error().in_doubt);
  EXPECT_FALSE(sender->answered);
  store.answers.release();
  EXPECT_TRUE(sender->get());
}

TEST_F(BatcherDeadline, a_batch_that_everybody_has_left_holds_up_nobody) {
  auto first = hang();
  auto leader = gathered(2, 500ms);
  clock.advance(600ms);
  EXPECT_FALSE(leader->get());
  store.answers.release(2);
  EXPECT_TRUE(first->get());
  EXPECT_TRUE(submit(5, 60s)->get());
  EXPECT_EQ(store.asked(), (std::vector<std::uint64_t>{1, 5}));
}

TEST(AsyncBatcher, requests_gather_while_a_batch_is_in_flight_and_each_gets_its_own_reply) {
  GatedStore store;
  std::latch answered(50);
  std::atomic<int> right = 0;
  runtime::AsyncBatcher batcher(store, system_clock(), {});
  const auto send = [&](std::uint64_t number) {
    batcher.send(numbered(number), [&, number](Request& request, Result<Reply>& reply, Instant) {
      if (request.grant.low == number && reply && reply->tokens.at(0) == number) ++right;
      answered.count_down();
    });
  };
  send(1);
  while (store.calls == 0) std::this_thread::yield();
  for (std::uint64_t i = 2; i <= 50; ++i) send(i);
  EXPECT_EQ(batcher.size(), 49U);
  store.gate.count_down();
  answered.wait();
  EXPECT_EQ(right, 50);
  EXPECT_EQ(store.calls, 2U);
  EXPECT_EQ(store.largest, 49U);
}

TEST(AsyncBatcher, what_ends_something_is_not_held_up_by_what_begins) {
  GatedStore store;
  std::latch answered(3);
  runtime::AsyncBatcher batcher(store, system_clock(), {.parallel = 2});
  const auto count = [&](Request&, Result<Reply>&, Instant) { answered.count_down(); };
  batcher.send(numbered(1), count);
  while (store.calls == 0) std::this_thread::yield();
  Request release = numbered(2);
  release.verb = Verb::release;
  batcher.send(release, count);
  batcher.send(numbered(3), count);
  while (store.calls < 2) std::this_thread::yield();
  EXPECT_EQ(store.last_verb, Verb::release);
  store.gate.count_down();
  answered.wait();
  EXPECT_EQ(store.calls, 3U);
}

TEST(AsyncBatcher, a_callback_that_blocks_holds_up_nothing_that_was_sent_in_it) {
  GatedStore store;
  store.gate.count_down();
  std::latch done(1);
  std::vector<bool> answered;
  runtime::AsyncBatcher batcher(store, system_clock(), {.parallel = 2});
  const auto ask_and_wait = [&](std::uint64_t number) {
    const auto heard = std::make_shared<std::atomic<bool>>(false);
    batcher.send(numbered(number), [heard](Request&, Result<Reply>&, Instant) { *heard = true; });
    const auto deadline = BootClock::now() + 30s;
    while (!*heard && BootClock::now() < deadline) std::this_thread::yield();
    answered.push_back(*heard);
  };
  batcher.send(numbered(1), [&](Request&, Result<Reply>&, Instant) {
    for (std::uint64_t i = 2; i <= 20; ++i) ask_and_wait(i);
    done.count_down();
  });
  done.wait();
  EXPECT_EQ(answered, std::vector<bool>(19, true));
}

// Notes the sizes of the batches.
class WeighingStore final : public LockStore {
 public:
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline) override {
    const std::lock_guard lock(mutex_);
    sizes_.push_back(batch.size());
    return std::vector<Reply>(batch.size());
  }
  Result<Page<LockInfo>> find(const Query&, Deadline) override { return Page<LockInfo>{}; }
  std::unique_ptr<Watch> watch(const std::string&, WakeSink&) override { return nullptr; }
  [[nodiscard]] Capabilities capabilities() const override { return {}; }

  std::vector<std::size_t> take_sizes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(sizes_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::size_t> sizes_;
};

// Sends the given number of requests from within a callback, and gives the sizes of the batches
// that they went in.
std::vector<std::size_t> batches_from_a_callback(runtime::AsyncBatcher& batcher,
                                                 WeighingStore& store, int count) {
  const auto answered = std::make_shared<std::latch>(count);
  batcher.send(numbered(1), [&, answered](Request&, Result<Reply>&, Instant) {
    (void)store.take_sizes();
    for (int i = 0; i < count; ++i) {
      batcher.send(numbered(2),
                   [answered](Request&, Result<Reply>&, Instant) { answered->count_down(); });
    }
  });
  answered->wait();
  return store.take_sizes();
}

// Another thread is not always idle when the callback ends; but it must not be long before it is.
TEST(AsyncBatcher, an_idle_thread_gets_a_fair_share_of_a_large_batch) {
  WeighingStore store;
  runtime::AsyncBatcher batcher(store, system_clock(), {.parallel = 2});
  const auto deadline = BootClock::now() + 60s;
  std::vector<std::size_t> sizes;
  while (sizes != std::vector<std::size_t>{20, 20} && BootClock::now() < deadline) {
    sizes = batches_from_a_callback(batcher, store, 40);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{20, 20}));
}

TEST(AsyncBatcher, a_thread_sends_what_its_callbacks_asked_for_whatever_other_callbacks_do) {
  WeighingStore store;
  std::latch blocked(1);
  std::latch go_on(1);
  std::latch answered(45);
  runtime::AsyncBatcher batcher(store, system_clock(), {.parallel = 2});
  const auto send = [&](int count) {
    for (int i = 0; i < count; ++i) {
      batcher.send(numbered(2), [&](Request&, Result<Reply>&, Instant) { answered.count_down(); });
    }
  };
  batcher.send(numbered(1), [&](Request&, Result<Reply>&, Instant) {
    send(5);
    blocked.count_down();
    go_on.wait();
  });
  blocked.wait();
  batcher.send(numbered(1), [&](Request&, Result<Reply>&, Instant) { send(40); });
  std::vector<std::size_t> sizes;
  const auto deadline = BootClock::now() + 60s;
  while (std::count(sizes.begin(), sizes.end(), 40) == 0 && BootClock::now() < deadline) {
    for (const auto size : store.take_sizes()) sizes.push_back(size);
    std::this_thread::yield();
  }
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 40), 1) << "all of them, and nobody else's";
  go_on.count_down();
  answered.wait();
}

TEST(AsyncBatcher, little_that_gathered_in_callbacks_goes_as_one) {
  WeighingStore store;
  runtime::AsyncBatcher batcher(store, system_clock(), {.parallel = 2});
  const auto deadline = BootClock::now() + 60s;
  std::vector<std::size_t> sizes;
  while (sizes != std::vector<std::size_t>{10} && BootClock::now() < deadline) {
    sizes = batches_from_a_callback(batcher, store, 10);
  }
  EXPECT_EQ(sizes, std::vector<std::size_t>{10});
}

// A thread that has just become idle may still take a part; with the pause, one that was called for
// the first request would always do so.
TEST(AsyncBatcher, what_a_caller_gathers_goes_as_one) {
  WeighingStore store;
  runtime::AsyncBatcher batcher(store, system_clock(), {.parallel = 2});
  const auto deadline = BootClock::now() + 60s;
  std::vector<std::size_t> sizes;
  while (sizes != std::vector<std::size_t>{10} && BootClock::now() < deadline) {
    std::latch answered(10);
    const auto send = [&](int count) {
      for (int i = 0; i < count; ++i) {
        batcher.send(numbered(1),
                     [&](Request&, Result<Reply>&, Instant) { answered.count_down(); });
      }
    };
    batcher.gather([&] {
      send(1);
      std::this_thread::sleep_for(10ms);
      send(9);
    });
    answered.wait();
    sizes = store.take_sizes();
  }
  EXPECT_EQ(sizes, std::vector<std::size_t>{10});
}

TEST(AsyncBatcher, when_it_stops_endings_are_still_sent_and_the_others_told) {
  GatedStore store;
  std::atomic<int> sent = 0;
  std::atomic<int> cancelled = 0;
  const auto count = [&](Request&, Result<Reply>& reply, Instant) {
    if (reply) ++sent;
    if (!reply && reply.error().code == Code::cancelled) ++cancelled;
  };
  runtime::AsyncBatcher batcher(store, system_clock(), {});
  batcher.send(numbered(1), count);
  while (store.calls == 0) std::this_thread::yield();
  Request release = numbered(2);
  release.verb = Verb::release;
  batcher.send(numbered(3), count);
  batcher.send(release, count);
  std::jthread stopper([&] { batcher.stop(); });
  // Once it has begun to stop, it refuses at once; the one in flight is still in flight.
  for (bool refused = false; !refused; std::this_thread::yield()) {
    const auto here = std::this_thread::get_id();
    batcher.send(numbered(4), [&, here](Request& request, Result<Reply>& reply, Instant sent_at) {
      if (std::this_thread::get_id() == here) refused = true;
      count(request, reply, sent_at);
    });
  }
  EXPECT_EQ(sent, 0);
  store.gate.count_down();
  stopper.join();
  EXPECT_EQ(sent, 2) << "the one in flight, and the release";
  EXPECT_GE(cancelled, 2) << "who waited, and who came too late";
}

}  // namespace
}  // namespace baton
