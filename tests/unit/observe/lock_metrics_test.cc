#include "baton/lock_metrics.h"

#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "baton/locks.h"
#include "core/trust.h"
#include "store/memory/memory_store.h"
#include "support/flaky_store.h"
#include "support/wait.h"

namespace baton::observe {
namespace {

using namespace std::chrono_literals;
using test::FlakyStore;
using test::poll_until;

// Time that only the test moves, for the clients and for the store.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return Instant(std::chrono::microseconds(micros_)); }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
            Instant until) override {
    if (now() < until) signal.wait_for(lock, 1ms);
  }
  [[nodiscard]] core::StoreTime store_time() const { return core::StoreTime(micros_.load()); }
  void advance(Millis by) { micros_ += std::chrono::microseconds(by).count(); }

 private:
  std::atomic<std::int64_t> micros_{1'000'000'000'000};
};

class LockMetricsTest : public ::testing::Test {
 protected:
  LockClient client(std::size_t max_kinds = LockMetrics::kMaxKinds) {
    return LockClient::make(flaky, {.owner = "n1",
                                    .clock = &clock,
                                    .observer = std::make_shared<LockMetrics>(metrics, max_kinds)})
        .value();
  }

  // The value of one series; -1 if it is not there.
  [[nodiscard]] double value(const std::string& series) const {
    const std::string text = "\n" + metrics->text();
    const auto found = text.find("\n" + series + " ");
    return found == std::string::npos ? -1 : std::atof(text.c_str() + found + series.size() + 2);
  }
  [[nodiscard]] double of_page(const std::string& name, const std::string& more = "") const {
    return value("baton_lock_" + name + R"({predicate="extracting",)" + more +
                 R"(subject="page"})");
  }
  [[nodiscard]] double failures(const std::string& reason) const {
    return value(R"(baton_lock_acquisition_failures_total{predicate="extracting",reason=")" +
                 reason + R"(",subject="page"})");
  }

  ManualClock clock;
  std::shared_ptr<LockStore> memory =
      store::make_memory_store_at([this] { return clock.store_time(); });
  std::shared_ptr<FlakyStore> flaky = std::make_shared<FlakyStore>(memory);
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  const LockName page{.subject = "page", .predicate = "extracting", .resources = {"7"}};
};

TEST_F(LockMetricsTest, attempts_successes_releases_and_hold_times_by_subject_and_predicate) {
  auto locks = client();
  {
    auto lease = locks.acquire(page, {.ttl = 60s}).value();
    EXPECT_EQ(of_page("active"), 1);
    clock.advance(4s);
  }
  EXPECT_EQ(of_page("acquisition_attempts_total"), 1);
  EXPECT_EQ(of_page("acquisition_successes_total"), 1);
  EXPECT_EQ(of_page("releases_total"), 1);
  EXPECT_EQ(of_page("release_failures_total"), 0);
  EXPECT_EQ(of_page("active"), 0);
  EXPECT_EQ(of_page("hold_duration_seconds_sum"), 4);
  EXPECT_EQ(of_page("ttl_seconds_sum"), 60);
  EXPECT_EQ(value(R"(baton_lock_acquisition_duration_seconds_count{predicate="extracting",)"
                  R"(subject="page",waited="no"})"),
            1);
  EXPECT_EQ(value(R"(baton_store_requests_total{outcome="granted",verb="acquire"})"), 1);
  EXPECT_EQ(value(R"(baton_store_requests_total{outcome="done",verb="release"})"), 1);
}

TEST_F(LockMetricsTest, a_busy_lock_is_contention_and_a_store_that_fails_an_api_error) {
  auto locks = client();
  auto held = locks.acquire(page).value();
  EXPECT_FALSE(locks.try_acquire(page));
  EXPECT_EQ(failures("contention"), 1);
  EXPECT_EQ(failures("api_error"), 0);
  flaky->set(FlakyStore::Line::refuses);
  EXPECT_FALSE(locks.try_acquire(page));
  flaky->set(FlakyStore::Line::good);
  EXPECT_EQ(failures("contention"), 1);
  EXPECT_EQ(failures("api_error"), 1);
  EXPECT_GE(value("baton_store_call_failures_total"), 1);
  EXPECT_FALSE(locks.acquire(page, {.ttl = 48h}));
  EXPECT_EQ(failures("invalid"), 1);
  EXPECT_EQ(of_page("acquisition_attempts_total"), 4);
  EXPECT_EQ(of_page("acquisition_successes_total"), 1);
}

TEST_F(LockMetricsTest,
       waiters_are_counted_while_they_wait_and_the_handover_once_they_are_through) {
  auto locks = client();
  auto held = locks.acquire(page).value();
  std::jthread waiter([&] { (void)locks.acquire(page, {.wait = 10min}); });
  EXPECT_TRUE(poll_until([&] { return of_page("queue_length") == 1; }));
  EXPECT_EQ(value("baton_lock_handover_duration_seconds_count"), 0);
  (void)held.release();
  waiter.join();
  EXPECT_EQ(of_page("queue_length"), 0);
  EXPECT_EQ(value(R"(baton_lock_acquisition_duration_seconds_count{predicate="extracting",)"
                  R"(subject="page",waited="yes"})"),
            1);
  EXPECT_EQ(value("baton_lock_handover_duration_seconds_count"), 1);
}

TEST_F(LockMetricsTest, an_acquire_with_a_callback_is_counted_like_one_that_blocks) {
  auto locks = client();
  std::optional<Lease> held = locks.acquire(page).value();
  std::atomic<int> through = 0;
  locks.acquire_async({page}, {.wait = 10min}, [&](Result<Lease> lease) {
    if (lease) ++through;
  });
  EXPECT_TRUE(poll_until([&] { return of_page("queue_length") == 1; }));
  held.reset();
  EXPECT_TRUE(poll_until([&] { return of_page("releases_total") == 2; }));
  EXPECT_EQ(through, 1);
  EXPECT_EQ(of_page("queue_length"), 0);
  EXPECT_EQ(of_page("active"), 0);
  EXPECT_EQ(of_page("acquisition_successes_total"), 2);
  std::atomic<bool> refused = false;
  locks.acquire_async({}, {}, [&](const Result<Lease>& lease) { refused = !lease; });
  EXPECT_TRUE(poll_until([&] { return refused.load(); }));
}

TEST_F(LockMetricsTest, a_renewal_that_comes_late_is_measured_from_when_it_was_due) {
  auto locks = client();
  auto held = locks.acquire(page, {.ttl = 30s}).value();
  flaky->set(FlakyStore::Line::refuses);
  const auto calls = flaky->calls();
  clock.advance(12s);  // due after ten
  EXPECT_TRUE(poll_until([&] { return flaky->calls() > calls; }));
  flaky->set(FlakyStore::Line::good);
  EXPECT_TRUE(poll_until([&] {
    clock.advance(100ms);
    return value("baton_lock_renewal_delay_seconds_count") >= 1;
  }));
  EXPECT_GE(value("baton_lock_renewal_delay_seconds_sum"), 2);
}

TEST_F(LockMetricsTest, a_lost_lease_is_counted_and_so_is_the_overlap_of_who_goes_on) {
  auto locks = client();
  auto held = locks.acquire(page, {.ttl = 10s}).value();
  flaky->set(FlakyStore::Line::refuses);
  clock.advance(10s - core::margin(10s));
  EXPECT_TRUE(poll_until([&] { return held.lost().stop_requested(); }));
  EXPECT_TRUE(poll_until([&] { return of_page("losses_total", R"(reason="expired",)") == 1; }));
  EXPECT_EQ(value("baton_lock_lease_overlap_seconds_count"), 0);
  clock.advance(core::margin(10s) + 5s);
  flaky->set(FlakyStore::Line::good);
  (void)held.release();
  EXPECT_EQ(value("baton_lock_lease_overlap_seconds_count"), 1);
  EXPECT_EQ(value("baton_lock_lease_overlap_seconds_sum"), 5);
  EXPECT_EQ(of_page("release_failures_total"), 1);
  EXPECT_EQ(of_page("active"), 0);
}

TEST_F(LockMetricsTest, who_lets_go_in_time_after_a_loss_overlaps_nobody) {
  auto locks = client();
  auto held = locks.acquire(page, {.ttl = 10s}).value();
  ASSERT_TRUE(locks.break_lock(page, {.reason = "test"}));
  EXPECT_TRUE(poll_until([&] { return held.lost().stop_requested(); }));
  EXPECT_TRUE(poll_until([&] { return of_page("losses_total", R"(reason="refused",)") == 1; }));
  (void)held.release();
  EXPECT_EQ(of_page("losses_total", R"(reason="expired",)"), 0);
  EXPECT_EQ(value("baton_lock_lease_overlap_seconds_count"), 0);
}

TEST_F(LockMetricsTest, made_up_subjects_share_one_series_and_bad_names_do_not_even_try) {
  auto locks = client(2);
  EXPECT_FALSE(locks.acquire({.subject = std::string("\x01")}));
  for (const std::string subject : {"a", "b", "c", "d"}) (void)locks.acquire({.subject = subject});
  const std::string attempts = "baton_lock_acquisition_attempts_total";
  EXPECT_EQ(value(attempts + R"({predicate="holding",subject="a"})"), 1);
  EXPECT_EQ(value(attempts + R"({predicate="holding",subject="c"})"), -1);
  EXPECT_EQ(value(attempts + R"({predicate="other",subject="other"})"), 3);
  EXPECT_EQ(value(R"(baton_lock_acquisition_failures_total{predicate="other",reason="invalid",)"
                  R"(subject="other"})"),
            1);
}

TEST_F(LockMetricsTest, as_many_kinds_as_there_is_room_for_are_told_apart_in_every_metric) {
  auto locks = client();
  for (std::size_t i = 0; i < LockMetrics::kMaxKinds; ++i) {
    (void)locks.acquire({.subject = "s" + std::to_string(i)});
  }
  EXPECT_EQ(metrics->text().find(R"(reason="other")"), std::string::npos);
  EXPECT_EQ(value(R"(baton_lock_acquisition_attempts_total{predicate="other",subject="other"})"),
            -1);
}

TEST_F(LockMetricsTest, many_threads_count_every_lock) {
  auto locks = client();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 200; ++turn) {
        (void)locks.acquire(
            {.subject = "s" + std::to_string((turn + i) % 7), .resources = {std::to_string(i)}});
      }
    });
  }
  threads.clear();
  double attempts = 0;
  for (int i = 0; i < 7; ++i) {
    attempts += value(R"(baton_lock_acquisition_attempts_total{predicate="holding",subject="s)" +
                      std::to_string(i) + R"("})");
  }
  EXPECT_EQ(attempts, 800);
}

}  // namespace
}  // namespace baton::observe
