#include "harness.h"

namespace baton::test {
namespace {

class Routing : public BrokerTest {
 protected:
  // Which of the queues got the message.
  std::set<std::string> receivers(Publisher& publisher, const std::vector<std::string>& queues,
                                  const Message& sent) {
    publish_all(publisher, {sent, [&] {
                              Message end = sent;
                              end.routing_key = "end.of.test";
                              end.headers = {{"end", "1"}};
                              end.body = "end";
                              return end;
                            }()});
    std::set<std::string> got;
    for (const auto& queue : queues) {
      auto subscription = broker_->subscribe(name(queue), {}, soon()).value();
      bool ended = false;
      while (!ended) {
        const auto deliveries = take(*subscription, 1);
        if (deliveries.empty()) throw std::runtime_error("no end in " + queue);
        ended = deliveries.front().message.body == "end";
        if (!ended) got.insert(queue);
        ack(*subscription, deliveries);
      }
    }
    return got;
  }
};

using Names = std::set<std::string>;

TEST_F(Routing, star_is_one_word_and_hash_any_number) {
  Topology topology = simple({});
  const std::vector<std::pair<std::string, std::string>> patterns{{"exact", "order.paid"},
                                                                  {"star", "order.*"},
                                                                  {"hash", "order.#"},
                                                                  {"inner", "#.paid"},
                                                                  {"all", "#"}};
  std::vector<std::string> queues;
  for (const auto& [queue, pattern] : patterns) {
    queues.push_back(queue);
    topology.queues.push_back({.name = name(queue)});
    for (const auto& bound : {pattern, std::string("end.of.test")}) {
      topology.bindings.push_back(
          {.exchange = name("events"), .pattern = bound, .queue = name(queue)});
    }
  }
  declare(topology);
  auto publisher = broker_->publisher().value();
  const auto to = [&](const std::string& key) {
    return receivers(*publisher, queues, message(key, key));
  };
  EXPECT_EQ(to("order.paid"), (Names{"exact", "star", "hash", "inner", "all"}));
  EXPECT_EQ(to("order"), (Names{"hash", "all"}));
  EXPECT_EQ(to("order.eu.paid"), (Names{"hash", "inner", "all"}));
  EXPECT_EQ(to("paid"), (Names{"inner", "all"}));
  EXPECT_EQ(to("orders.sent"), (Names{"all"}));
}

TEST_F(Routing, a_queue_that_is_bound_twice_gets_a_message_once) {
  Topology topology = simple({"q"});
  topology.bindings.push_back({.exchange = name("events"), .pattern = "a.*", .queue = name("q")});
  declare(topology);
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("a.b", "one"), message("a.c", "two")});
  EXPECT_EQ(drain(*broker_, name("q"), 2), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(is_empty(*broker_, name("q")));
}

TEST_F(Routing, headers_exchanges_and_alternates_divide_by_lane) {
  Topology topology = simple({});
  topology.exchanges.push_back({.name = name("rest")});
  topology.exchanges.push_back(
      {.name = name("lanes"), .type = Topology::Type::headers, .alternate = name("rest")});
  topology.bindings.push_back(
      {.exchange = name("events"), .pattern = "#", .to_exchange = name("lanes")});
  const std::vector<std::string> queues{"lane0", "lane1", "lane2"};
  for (const auto& queue : queues) {
    topology.queues.push_back({.name = name(queue)});
    topology.bindings.push_back(
        {.exchange = name("lanes"), .pattern = "end=1", .queue = name(queue)});
  }
  topology.bindings.push_back({.exchange = name("rest"), .pattern = "#", .queue = name("lane0")});
  for (const char* lane : {"1", "2"}) {
    topology.bindings.push_back({.exchange = name("lanes"),
                                 .pattern = std::string("x-lane=") + lane,
                                 .queue = name(std::string("lane") + lane)});
  }
  declare(topology);
  auto publisher = broker_->publisher().value();
  const auto to = [&](const std::string& lane) {
    Message sent = message("a.b", "lane " + lane);
    if (!lane.empty()) sent.headers["x-lane"] = lane;
    return receivers(*publisher, queues, sent);
  };
  EXPECT_EQ(to("1"), Names{"lane1"});
  EXPECT_EQ(to("2"), Names{"lane2"});
  EXPECT_EQ(to("7"), Names{"lane0"});
  EXPECT_EQ(to(""), Names{"lane0"});
}

TEST_F(Routing, every_bound_queue_has_its_own_copy) {
  declare(simple({"a", "b", "c"}));
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "one"), message("k", "two")});
  for (const char* queue : {"a", "b", "c"}) {
    EXPECT_EQ(drain(*broker_, name(queue), 2), (std::vector<std::string>{"one", "two"})) << queue;
  }
}

}  // namespace
}  // namespace baton::test
