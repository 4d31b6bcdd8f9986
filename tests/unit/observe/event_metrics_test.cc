#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "baton/consumer_metrics.h"
#include "baton/outbox_metrics.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::observe {
namespace {

using namespace std::chrono_literals;
using Kind = ConsumerNote::Kind;

class EventMetricsTest : public ::testing::Test {
 protected:
  // The value of one series; -1 if it is not there.
  [[nodiscard]] double value(const std::string& series) const {
    const std::string text = "\n" + metrics->text();
    const auto found = text.find("\nbaton_" + series + " ");
    return found == std::string::npos ? -1 : std::atof(text.c_str() + text.find(' ', found));
  }
  void tell(Kind kind) const { consumer.count({.kind = kind}); }

  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  ConsumerMetrics consumer{metrics, "billing"};
  OutboxMetrics outbox{metrics, "shop"};
};

TEST_F(EventMetricsTest, a_consumer_that_has_handled_nothing_is_shown_as_0) {
  for (const std::string outcome : {"done", "rejected", "dead", "poison"}) {
    EXPECT_EQ(value(R"(consumer_handled_total{consumer="billing",outcome=")" + outcome + "\"}"), 0);
  }
  EXPECT_EQ(value(R"(consumer_paused{consumer="billing"})"), 0);
  EXPECT_EQ(value(R"(dead_letters{consumer="billing"})"), 0);
}

TEST_F(EventMetricsTest, every_outcome_of_an_event_has_its_own_series) {
  tell(Kind::received);
  tell(Kind::processed);
  tell(Kind::processed);
  tell(Kind::rejected);
  tell(Kind::skipped);
  tell(Kind::failed);
  tell(Kind::failed);
  tell(Kind::failed);
  tell(Kind::dead);
  tell(Kind::poison);
  tell(Kind::kept);
  tell(Kind::hook_failed);
  tell(Kind::broker_lost);
  const auto handled = [&](const std::string& outcome) {
    return value(R"(consumer_handled_total{consumer="billing",outcome=")" + outcome + "\"}");
  };
  EXPECT_EQ(handled("done"), 2);
  EXPECT_EQ(handled("rejected"), 1);
  EXPECT_EQ(handled("dead"), 1);
  EXPECT_EQ(handled("poison"), 1);
  EXPECT_EQ(value(R"(consumer_duplicates_total{consumer="billing"})"), 1);
  EXPECT_EQ(value(R"(consumer_retries_total{consumer="billing"})"), 3);
  EXPECT_EQ(value(R"(consumer_kept_total{consumer="billing"})"), 1);
  EXPECT_EQ(value(R"(consumer_give_up_failures_total{consumer="billing"})"), 1);
  EXPECT_EQ(value(R"(consumer_broker_losses_total{consumer="billing"})"), 1);
}

TEST_F(EventMetricsTest, a_pause_and_an_open_breaker_are_shown_until_they_are_over) {
  tell(Kind::paused);
  tell(Kind::breaker_opened);
  EXPECT_EQ(value(R"(consumer_paused{consumer="billing"})"), 1);
  EXPECT_EQ(value(R"(consumer_breaker_open{consumer="billing"})"), 1);
  tell(Kind::resumed);
  tell(Kind::breaker_closed);
  EXPECT_EQ(value(R"(consumer_paused{consumer="billing"})"), 0);
  EXPECT_EQ(value(R"(consumer_breaker_open{consumer="billing"})"), 0);
}

TEST_F(EventMetricsTest, the_age_of_an_event_is_measured_if_its_sender_said_when_it_was_added) {
  const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  consumer.count({.kind = Kind::processed, .occurred_at = now - 30min});
  consumer.count({.kind = Kind::rejected, .occurred_at = now + 1h});  // of another clock
  consumer.count({.kind = Kind::processed});
  EXPECT_EQ(value(R"(consumer_event_age_seconds_count{consumer="billing"})"), 2);
  EXPECT_EQ(value(R"(consumer_event_age_seconds_bucket{consumer="billing",le="0.01"})"), 1);
  EXPECT_EQ(value(R"(consumer_event_age_seconds_bucket{consumer="billing",le="600"})"), 1);
  EXPECT_EQ(value(R"(consumer_event_age_seconds_bucket{consumer="billing",le="3600"})"), 2);
}

TEST_F(EventMetricsTest, what_is_in_trouble_is_shown_as_it_was_counted) {
  consumer.count({.kind = Kind::counted, .counts = {.retry = 7, .held = 5, .dead = 3}});
  EXPECT_EQ(value(R"(consumer_retrying{consumer="billing"})"), 7);
  EXPECT_EQ(value(R"(consumer_held{consumer="billing"})"), 5);
  EXPECT_EQ(value(R"(dead_letters{consumer="billing"})"), 3);
}

TEST_F(EventMetricsTest, a_relay_is_counted_by_what_became_of_its_events) {
  outbox.count({.kind = RelayEvent::Kind::published, .took = 40ms});
  outbox.count({.kind = RelayEvent::Kind::returned});
  outbox.count({.kind = RelayEvent::Kind::failed});
  outbox.count({.kind = RelayEvent::Kind::refused});
  outbox.count({.kind = RelayEvent::Kind::swept, .count = 4});
  outbox.show({.trouble = "the broker is away",
               .lanes_owned = 16,
               .waiting_pending = 9,
               .waiting_held = 8,
               .waiting_failed = 1,
               .oldest = 61s});
  EXPECT_EQ(value(R"(outbox_published_total{outbox="shop"})"), 1);
  EXPECT_EQ(value(R"(outbox_publish_latency_seconds_sum{outbox="shop"})"), 0.04);
  EXPECT_EQ(value(R"(outbox_retries_total{outbox="shop"})"), 1);
  EXPECT_EQ(value(R"(outbox_gave_up_total{outbox="shop"})"), 1);
  EXPECT_EQ(value(R"(outbox_refused_total{outbox="shop"})"), 1);
  EXPECT_EQ(value(R"(outbox_swept_total{outbox="shop"})"), 4);
  EXPECT_EQ(value(R"(outbox_pending{outbox="shop"})"), 9);
  EXPECT_EQ(value(R"(outbox_held{outbox="shop"})"), 8);
  EXPECT_EQ(value(R"(outbox_failed{outbox="shop"})"), 1);
  EXPECT_EQ(value(R"(outbox_oldest_age_seconds{outbox="shop"})"), 61);
  EXPECT_EQ(value(R"(outbox_blocked{outbox="shop"})"), 1);
  EXPECT_EQ(value(R"(outbox_lanes_owned{outbox="shop"})"), 16);
}

TEST_F(EventMetricsTest, promtool_finds_nothing_wrong_with_the_names) {
  const test::TempDir dir("event-metrics");
  const std::string file = (dir / "metrics.txt").string();
  std::ofstream(file) << metrics->text();
  const auto checked = test::run({.argv = {"sh", "-c", "promtool check metrics < \"$0\"", file}});
  EXPECT_TRUE(checked.status.success()) << checked.out << checked.err;
  EXPECT_EQ(checked.out + checked.err, "");
}

}  // namespace
}  // namespace baton::observe
