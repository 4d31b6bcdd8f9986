#include <csignal>

#include <algorithm>

#include "harness.h"

namespace baton::test {
namespace {

class Processes : public BrokerTest {
 protected:
  void fill(int count) {
    declare(simple({"q"}));
    auto publisher = broker_->publisher().value();
    std::vector<Message> messages;
    for (int i = 0; i < count; ++i) messages.push_back(message("k", std::to_string(100 + i)));
    publish_all(*publisher, messages);
  }
};

TEST_F(Processes, what_a_killed_consumer_had_is_delivered_again) {
  fill(4);
  Process consumer(client_process({"hold", name("q"), "3"}));
  ASSERT_TRUE(consumer.wait_for_out("took\n")) << consumer.err();
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  EXPECT_EQ(bodies(take(*subscription, 1)), std::vector<std::string>{"103"});
  EXPECT_TRUE(subscription->take(1, in(Millis(200))).value().empty());
  consumer.kill(SIGKILL);
  const auto again = take(*subscription, 3);
  auto all = bodies(again);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<std::string>{"100", "101", "102"}));
  for (const auto& delivery : again) EXPECT_EQ(delivery.delivery_count, 1U);
}

TEST_F(Processes, a_killed_active_consumer_is_followed_by_the_next) {
  Topology topology = simple({"q"});
  topology.queues[0].single_active = true;
  declare(topology);
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "one"), message("k", "two")});
  Process consumer(client_process({"hold", name("q"), "1"}));
  ASSERT_TRUE(consumer.wait_for_out("took\n")) << consumer.err();
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  EXPECT_TRUE(subscription->take(1, in(Millis(200))).value().empty());
  consumer.kill(SIGKILL);
  EXPECT_EQ(bodies(take(*subscription, 2)), (std::vector<std::string>{"one", "two"}));
}

// What an ordered consumer stands on: the next active one gets first what came back, in the
// order in which it was published, and then what is new.
TEST_F(Processes, what_active_consumers_leave_behind_comes_again_in_its_order) {
  Topology topology = simple({"q"});
  topology.queues[0].single_active = true;
  declare(topology);
  auto publisher = broker_->publisher().value();
  std::vector<Message> messages;
  std::vector<std::string> all;
  for (int i = 100; i < 130; ++i) {
    all.push_back(std::to_string(i));
    messages.push_back(message("k", all.back()));
  }
  publish_all(*publisher, messages);
  for (const char* most : {"5", "8", "3"}) {
    Process consumer(client_process({"hold", name("q"), most, "8"}));
    ASSERT_TRUE(consumer.wait_for_out("took\n")) << consumer.err();
    consumer.kill(SIGKILL);
  }
  {
    auto subscription = broker_->subscribe(name("q"), {.prefetch = 8}, soon()).value();
    const auto first = take(*subscription, 4);
    EXPECT_EQ(bodies(first), std::vector<std::string>(all.begin(), all.begin() + 4));
    ack(*subscription, {first[0], first[1]});
  }  // says goodbye; what it had, taken or not, goes back
  auto subscription = broker_->subscribe(name("q"), {.prefetch = 8}, soon()).value();
  std::vector<std::string> got;
  while (got.size() < 28) {
    const auto some = take(*subscription, 1);
    ASSERT_FALSE(some.empty());
    for (const auto& body : bodies(some)) got.push_back(body);
    ack(*subscription, some);
  }
  EXPECT_EQ(got, std::vector<std::string>(all.begin() + 2, all.end()));
}

// A consumer stands still, as its machine does when it swaps, and comes back.
TEST_F(Processes, what_a_stopped_consumer_had_is_delivered_to_others_and_its_acks_are_refused) {
  fill(2);
  Process consumer(client_process({"hold", name("q"), "2"}, broker_factory().impatient_url()));
  ASSERT_TRUE(consumer.wait_for_out("took\n")) << consumer.err();
  ASSERT_TRUE(stop_still(consumer.pid()));
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  const auto again = take(*subscription, 2);
  EXPECT_EQ(again.size(), 2U);
  consumer.kill(SIGCONT);
  ASSERT_TRUE(consumer.write("\n"));
  EXPECT_TRUE(consumer.wait_for_out("refused: ")) << consumer.out();
  ack(*subscription, again);
  subscription.reset();
  EXPECT_TRUE(is_empty(*broker_, name("q")));
}

// One restart for all of it: some brokers take long to start.
TEST_F(Processes, a_restart_loses_nothing_that_was_taken_and_publishers_go_on) {
  fill(20);
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "before")});
  {
    auto subscription = broker_->subscribe(name("q"), {.prefetch = 10}, soon()).value();
    const auto deliveries = take(*subscription, 10);
    ASSERT_EQ(deliveries.size(), 10U);
    for (int i = 0; i < 5; ++i) ack(*subscription, {deliveries[static_cast<std::size_t>(i)]});
    broker_factory().restart();
  }
  EXPECT_TRUE(poll_until([&] {
    const std::vector<Message> one{message("k", "after")};
    if (!publisher->publish(one, in(Millis(1'000)))) return false;
    const auto confirms = publisher->confirms(in(Millis(1'000)));
    return confirms && confirms->size() == 1 && confirms->front().outcome == PublishOutcome::taken;
  }));
  EXPECT_TRUE(publisher->state().connected);
  const auto fresh = broker_->publisher().value();
  EXPECT_FALSE(fresh->state().connected);
  ASSERT_TRUE(fresh->publish({}, soon()));
  EXPECT_TRUE(fresh->state().connected) << "without a message too";
  std::set<std::string> left{"before", "after"};
  for (int i = 5; i < 20; ++i) left.insert(std::to_string(100 + i));
  const auto got = drain(*open(), name("q"), left.size());
  EXPECT_EQ(std::set<std::string>(got.begin(), got.end()), left);
}

}  // namespace
}  // namespace baton::test
