#include <algorithm>

#include "harness.h"

namespace baton::test {
namespace {

class Deliveries : public BrokerTest {
 protected:
  void fill(int count) {
    declare(simple({"q"}));
    publish_more(count);
  }
  void publish_more(int count) {
    auto publisher = broker_->publisher().value();
    std::vector<Message> messages;
    for (int i = 0; i < count; ++i) messages.push_back(message("k", std::to_string(100 + i)));
    publish_all(*publisher, messages);
  }
  std::unique_ptr<Subscription> subscribe(std::size_t prefetch = 64) {
    return broker_->subscribe(name("q"), {.prefetch = prefetch}, soon()).value();
  }
};

TEST_F(Deliveries, one_consumer_gets_messages_in_order_and_each_once) {
  fill(100);
  auto subscription = subscribe(10);
  std::vector<std::string> got;
  while (got.size() < 100) {
    const auto deliveries = take(*subscription, 1);
    ASSERT_FALSE(deliveries.empty());
    EXPECT_EQ(deliveries[0].delivery_count, 0U);
    got.push_back(deliveries[0].message.body);
    ack(*subscription, deliveries);
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], std::to_string(100 + i));
  subscription.reset();
  EXPECT_TRUE(is_empty(*broker_, name("q")));
}

TEST_F(Deliveries, prefetch_limits_what_is_unsettled) {
  fill(10);
  auto subscription = subscribe(3);
  auto deliveries = take(*subscription, 3);
  ASSERT_EQ(deliveries.size(), 3U);
  EXPECT_TRUE(subscription->take(10, in(Millis(200))).value().empty());
  ack(*subscription, {deliveries[1]});
  const auto next = subscription->take(10, soon()).value();
  EXPECT_EQ(bodies(next), std::vector<std::string>{"103"});
  EXPECT_TRUE(subscription->take(10, in(Millis(200))).value().empty());
}

TEST_F(Deliveries, what_is_requeued_comes_again_and_is_counted) {
  fill(1);
  auto subscription = subscribe();
  for (std::uint32_t count = 0; count < 3; ++count) {
    const auto deliveries = take(*subscription, 1);
    ASSERT_EQ(deliveries.size(), 1U);
    EXPECT_EQ(deliveries[0].message.body, "100");
    EXPECT_EQ(deliveries[0].delivery_count, count);
    settle(*subscription, deliveries[0], Settle::requeue);
  }
  ack(*subscription, take(*subscription, 1));
  subscription.reset();
  EXPECT_TRUE(is_empty(*broker_, name("q")));
}

TEST_F(Deliveries, what_is_requeued_wakes_another_consumer) {
  fill(1);
  auto first = subscribe();
  const auto deliveries = take(*first, 1);
  ASSERT_EQ(deliveries.size(), 1U);
  auto second = subscribe();
  EXPECT_TRUE(second->take(1, in(Millis(100))).value().empty());
  first.reset();
  const auto again = take(*second, 1);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].message.body, "100");
  EXPECT_EQ(again[0].delivery_count, 1U);
}

TEST_F(Deliveries, what_nobody_settles_ends_with_the_dead_letters) {
  declare(simple({"q"}));
  Message sent = message("some.key", "100");
  sent.headers = {{"x-lane", "3"}, {"plain", "value"}};
  publish_all(*broker_->publisher().value(), {sent, message("k", "101")});
  auto subscription = subscribe(1);
  int deliveries_of_first = 0;
  for (bool given_up = false; !given_up;) {
    const auto deliveries = take(*subscription, 1);
    ASSERT_EQ(deliveries.size(), 1U);
    given_up = deliveries[0].message.body == "101";
    if (given_up) {
      ack(*subscription, deliveries);
    } else {
      ++deliveries_of_first;
      settle(*subscription, deliveries[0], Settle::requeue);
    }
    ASSERT_LT(deliveries_of_first, 100);
  }
  // The other message may come first; then this ends there.
  while (true) {
    const auto deliveries = subscription->take(1, in(Millis(300))).value();
    if (deliveries.empty()) break;
    ++deliveries_of_first;
    settle(*subscription, deliveries[0], Settle::requeue);
    ASSERT_LT(deliveries_of_first, 100);
  }
  EXPECT_EQ(deliveries_of_first, 21);
  auto dead = broker_->subscribe(name("q") + ".dlq", {}, soon()).value();
  const auto given_up = take(*dead, 1);
  ASSERT_EQ(given_up.size(), 1U);
  // As it was published, so that it can be sent on.
  EXPECT_TRUE(given_up[0].message == sent);
  ack(*dead, given_up);
}

TEST_F(Deliveries, settling_twice_or_what_one_does_not_have_is_an_error) {
  fill(1);
  auto subscription = subscribe();
  const auto deliveries = take(*subscription, 1);
  ASSERT_EQ(deliveries.size(), 1U);
  ack(*subscription, deliveries);
  const Settlement again{deliveries[0].tag, Settle::ack};
  EXPECT_FALSE(subscription->settle({&again, 1}, soon()));
  // The subscription has ended.
  EXPECT_FALSE(subscription->take(1, in(Millis(100))));
}

TEST_F(Deliveries, a_subscription_of_several_queues_gets_all_of_them_each_in_its_order) {
  Topology topology = simple({});
  for (const char* queue : {"a", "b", "c"}) {
    topology.queues.push_back({.name = name(queue)});
    topology.bindings.push_back(
        {.exchange = name("events"), .pattern = queue, .queue = name(queue)});
  }
  declare(topology);
  auto publisher = broker_->publisher().value();
  std::vector<Message> messages;
  for (int i = 10; i < 30; ++i) {
    for (const char* queue : {"a", "b", "c"}) {
      messages.push_back(message(queue, queue + std::to_string(i)));
    }
  }
  publish_all(*publisher, messages);
  const std::vector<std::string> queues{name("a"), name("b"), name("c")};
  std::map<char, std::vector<std::string>> got;
  std::size_t count = 0;
  {
    auto subscription = broker_->subscribe(queues, {.prefetch = 4}, soon()).value();
    const auto most = take(*subscription, 12);  // the prefetch of each
    ASSERT_EQ(most.size(), 12U);
    EXPECT_TRUE(subscription->take(1, in(Millis(200))).value().empty());
    std::vector<Delivery> acked;
    for (const Delivery& one : most) {
      if (one.message.body[0] != 'a') acked.push_back(one);
    }
    ack(*subscription, acked);
    for (const auto& one : acked) got[one.message.body[0]].push_back(one.message.body);
    count = acked.size();
    EXPECT_EQ(count, 8U);
  }
  auto subscription = broker_->subscribe(queues, {.prefetch = 4}, soon()).value();
  while (count < 60) {
    const auto some = take(*subscription, 1);
    ASSERT_FALSE(some.empty());
    for (const auto& one : some) got[one.message.body[0]].push_back(one.message.body);
    count += some.size();
    ack(*subscription, some);
  }
  for (const auto& [queue, all] : got) {
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end())) << queue;
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 20U) << queue;
  }
  const auto missing = broker_->subscribe({name("a"), name("nobody")}, {}, soon());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find(name("nobody")), std::string::npos);
}

TEST_F(Deliveries, only_one_consumer_of_a_single_active_queue_gets_messages) {
  Topology topology = simple({"q"});
  topology.queues[0].single_active = true;
  declare(topology);
  publish_more(3);
  auto first = subscribe();
  ASSERT_EQ(take(*first, 1).size(), 1U);
  auto second = subscribe();
  EXPECT_TRUE(second->take(10, in(Millis(300))).value().empty());
  EXPECT_EQ(take(*first, 2).size(), 2U);
  first.reset();
  // Everything that the first one had, in order.
  EXPECT_EQ(bodies(take(*second, 3)), (std::vector<std::string>{"100", "101", "102"}));
}

TEST_F(Deliveries, there_is_no_subscription_to_an_unknown_queue) {
  const auto subscription = broker_->subscribe(name("nothing"), {}, soon());
  ASSERT_FALSE(subscription);
  EXPECT_NE(subscription.error().message.find(name("nothing")), std::string::npos)
      << subscription.error().message;
  declare(simple({"q"}));
  EXPECT_FALSE(broker_->subscribe(name("q"), {.prefetch = 0}, soon()));
  EXPECT_FALSE(broker_->subscribe(name("q"), {.prefetch = 70'000}, soon()));
}

TEST_F(Deliveries, queues_are_counted) {
  fill(5);
  const Topology topology = simple({"q", "never"});
  const auto count = [&](std::size_t which) {
    return broker_->queues(topology, soon()).value().at(which);
  };
  EXPECT_TRUE(poll_until([&] { return count(0).ready == 5; }));
  EXPECT_EQ(count(0).name, name("q"));
  EXPECT_TRUE(count(0).exists);
  EXPECT_FALSE(count(1).exists);
  EXPECT_EQ(count(0).consumers, 0U);
  auto subscription = subscribe(2);
  ASSERT_EQ(take(*subscription, 2).size(), 2U);
  EXPECT_TRUE(poll_until([&] { return count(0).ready == 3 && count(0).consumers == 1; }));
}

}  // namespace
}  // namespace baton::test
