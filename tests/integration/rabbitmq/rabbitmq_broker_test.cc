// What only RabbitMQ does; the rest is in tests/conformance/broker.

#include <algorithm>
#include <fstream>
#include <set>

#include "integration/rabbitmq/foreign_client.h"
#include "integration/rabbitmq/rabbitmq_support.h"
#include "support/fault_proxy.h"

namespace baton::test {
namespace {

using Outcome = PublishOutcome;

class Rabbitmq : public ::testing::Test {
 protected:
  Rabbitmq() {
    static int tests = 0;
    prefix_ = "r" + std::to_string(++tests) + ".";
  }

  [[nodiscard]] std::string name(const std::string& text) const { return prefix_ + text; }

  [[nodiscard]] Topology simple(const std::string& queue) const {
    return {.exchanges = {{.name = name("events")}},
            .queues = {{.name = name(queue)}},
            .bindings = {{.exchange = name("events"), .pattern = "#", .queue = name(queue)}}};
  }

  [[nodiscard]] std::set<std::string> codes(const Topology& topology) const {
    std::set<std::string> all;
    const auto findings = broker_->check(topology, soon()).value();
    for (const auto& finding : findings) {
      if (finding.code != "bindings-not-visible") all.insert(finding.code);
    }
    return all;
  }

  [[nodiscard]] Message message(const std::string& exchange, const std::string& body) const {
    return {.exchange = name(exchange), .routing_key = "k", .id = body, .body = body};
  }

  // The outcomes in the order of the messages.
  static std::vector<Confirm> outcomes(Publisher& publisher, const std::vector<Message>& messages) {
    const std::uint64_t first = publisher.publish(messages, soon()).value();
    std::vector<Confirm> all(messages.size());
    for (std::size_t count = 0; count < messages.size();) {
      const auto confirms = publisher.confirms(soon()).value();
      if (confirms.empty()) throw std::runtime_error("no confirms");
      for (const Confirm& confirm : confirms) all.at(confirm.tag - first) = confirm;
      count += confirms.size();
    }
    return all;
  }

  static Delivery take_one(Subscription& subscription) {
    return subscription.take(1, soon()).value().at(0);
  }

  const std::shared_ptr<Broker> broker_ = Broker::open(server().url()).value();
  ForeignClient foreign_{server().port()};

 private:
  std::string prefix_;
};

TEST_F(Rabbitmq, a_classic_queue_of_somebody_else_is_found_and_left_alone) {
  foreign_.declare_queue(name("q"), {{"x-message-ttl", 60'000}});
  const Topology topology = simple("q");
  const auto found = codes(topology);
  EXPECT_TRUE(found.contains("classic-queue"));
  EXPECT_TRUE(found.contains("message-ttl"));
  const auto declared = broker_->declare(topology, soon());
  ASSERT_FALSE(declared);
  EXPECT_EQ(declared.error().code, Code::bad_store);
  EXPECT_NE(declared.error().message.find(name("q")), std::string::npos)
      << declared.error().message;
  EXPECT_TRUE(codes(topology).contains("missing-exchange")) << "nothing was made";
}

TEST_F(Rabbitmq, a_queue_that_drops_messages_when_full_is_found) {
  foreign_.declare_queue(name("q"), {{"x-queue-type", "quorum"}, {"x-max-length", 10}});
  const auto found = codes(simple("q"));
  EXPECT_TRUE(found.contains("drops-messages"));
  EXPECT_TRUE(found.contains("other-arguments"));
  EXPECT_FALSE(found.contains("classic-queue"));
}

TEST_F(Rabbitmq, messages_of_other_programs_are_understood) {
  broker_->declare(simple("q"), soon()).value();
  const std::string large(3 << 20, 'x');
  foreign_.publish(name("q"), "small", {{"number", 42}, {"text", "t"}});
  foreign_.publish(name("q"), large, {});
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  const Message small = take_one(*subscription).message;
  EXPECT_EQ(small.body, "small");
  EXPECT_EQ(small.id, "");
  EXPECT_EQ(small.content_type, "");
  EXPECT_EQ(small.headers, (std::map<std::string, std::string>{{"number", "42"}, {"text", "t"}}));
  EXPECT_EQ(take_one(*subscription).message.body.size(), kMaxMessageBody + 1) << "cut off";
}

TEST_F(Rabbitmq, a_deleted_exchange_is_the_fault_of_its_own_messages_only) {
  Topology topology = simple("q");
  topology.exchanges.push_back({.name = name("gone")});
  topology.bindings.push_back({.exchange = name("gone"), .pattern = "#", .queue = name("q")});
  broker_->declare(topology, soon()).value();
  auto publisher = broker_->publisher().value();
  const std::vector<Message> both{message("gone", "1"), message("events", "2")};
  for (const auto& confirm : outcomes(*publisher, both)) {
    EXPECT_EQ(confirm.outcome, Outcome::taken) << confirm.why;
  }
  foreign_.delete_exchange(name("gone"));
  // The server ends the channel, and nobody knows what it took before.
  for (const auto& confirm : outcomes(*publisher, both)) {
    EXPECT_EQ(confirm.outcome, Outcome::unknown) << confirm.why;
  }
  const auto again = outcomes(*publisher, both);
  EXPECT_EQ(again[0].outcome, Outcome::returned) << again[0].why;
  EXPECT_EQ(again[1].outcome, Outcome::taken) << again[1].why;
}

TEST_F(Rabbitmq, a_missing_right_and_a_limit_of_the_server_do_not_stop_the_others) {
  Topology topology = simple("q");
  topology.exchanges.push_back({.name = name("secret")});
  topology.bindings.push_back({.exchange = name("secret"), .pattern = "#", .queue = name("q")});
  broker_->declare(topology, soon()).value();
  server().ctl({"eval",
                R"(rabbit_auth_backend_internal:add_user(<<"limited">>, <<"pw">>, <<"test">>),
                   rabbit_auth_backend_internal:set_permissions(<<"limited">>, <<"/">>, <<"">>,
                     <<".*events">>, <<"">>, <<"test">>),
                   application:set_env(rabbit, max_message_size, 100000).)"});
  const auto limited =
      Broker::open("rabbitmq://limited:pw@127.0.0.1:" + std::to_string(server().port())).value();
  auto publisher = limited->publisher().value();
  Message large = message("events", "large");
  large.body.assign(200'000, 'x');
  const std::vector<Message> messages{message("events", "1"), message("secret", "2"), large,
                                      message("events", "3")};
  std::vector<Confirm> last;
  for (int attempt = 0; attempt < 3; ++attempt) last = outcomes(*publisher, messages);
  EXPECT_EQ(last[0].outcome, Outcome::taken) << last[0].why;
  EXPECT_EQ(last[1].outcome, Outcome::returned);
  EXPECT_NE(last[1].why.find("ACCESS_REFUSED"), std::string::npos) << last[1].why;
  EXPECT_EQ(last[2].outcome, Outcome::returned);
  EXPECT_NE(last[2].why.find("100000"), std::string::npos) << last[2].why;
  EXPECT_EQ(last[3].outcome, Outcome::taken) << last[3].why;

  const auto subscribed = limited->subscribe(name("q"), {}, soon());
  ASSERT_FALSE(subscribed);
  EXPECT_EQ(subscribed.error().code, Code::unauthorized);
  server().ctl({"eval", "application:set_env(rabbit, max_message_size, 134217728)."});
}

TEST_F(Rabbitmq, the_rights_that_the_page_names_suffice) {
  server().ctl({"eval",
                R"erl(rabbit_auth_backend_internal:add_user(<<"shop">>, <<"pw">>, <<"test">>),
                   rabbit_auth_backend_internal:set_permissions(<<"shop">>, <<"/">>,
                     <<"^shop\\.">>, <<"^(shop\\.|amq\\.default$)">>, <<"^shop\\.">>,
                     <<"test">>).)erl"});
  const auto shop =
      Broker::open("rabbitmq://shop:pw@127.0.0.1:" + std::to_string(server().port())).value();
  Topology topology{
      .exchanges = {{.name = "shop.events", .alternate = "shop.rest"}, {.name = "shop.rest"}},
      .queues = {{.name = "shop.q"}},
      .bindings = {{.exchange = "shop.events", .pattern = "a", .queue = "shop.q"},
                   {.exchange = "shop.rest", .pattern = "#", .queue = "shop.q"}}};
  for (int i = 0; i < 2; ++i) {
    const auto declared = shop->declare(topology, soon());
    ASSERT_TRUE(declared) << declared.error().message;
  }
  const auto findings = shop->check(topology, soon()).value();
  for (const auto& finding : findings) EXPECT_EQ(finding.code, "bindings-not-visible");
  auto publisher = shop->publisher().value();
  EXPECT_EQ(outcomes(*publisher, {{.exchange = "shop.events", .body = "1"}})[0].outcome,
            Outcome::taken);
  auto subscription = shop->subscribe("shop.q", {}, soon()).value();
  EXPECT_EQ(take_one(*subscription).message.body, "1");
  topology.queues.push_back({.name = "other.q"});
  const auto refused = shop->declare(topology, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unauthorized);
}

TEST_F(Rabbitmq, a_deleted_queue_ends_its_subscription) {
  broker_->declare(simple("q"), soon()).value();
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  foreign_.delete_queue(name("q"));
  const auto taken = subscription->take(1, soon());
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find(name("q")), std::string::npos) << taken.error().message;
  EXPECT_FALSE(subscription->take(1, soon()));
}

// A cable that is cut says nothing; only missing heartbeats do.
TEST_F(Rabbitmq, a_silent_connection_is_given_up_and_replaced) {
  broker_->declare(simple("q"), soon()).value();
  FaultProxy proxy(server().port());
  const auto broker =
      Broker::open("rabbitmq://guest:guest@127.0.0.1:" + std::to_string(proxy.port()) +
                   "/?heartbeat=1s")
          .value();
  auto publisher = broker->publisher().value();
  EXPECT_EQ(outcomes(*publisher, {message("events", "1")})[0].outcome, Outcome::taken);
  auto subscription = broker->subscribe(name("q"), {}, soon()).value();
  EXPECT_EQ(take_one(*subscription).message.body, "1");
  // For longer than two heartbeats nothing happens but heartbeats.
  EXPECT_TRUE(publisher->confirms(in(Millis(2'500))).value().empty());
  EXPECT_TRUE(publisher->state().connected);

  proxy.silence();
  const auto lost = outcomes(*publisher, {message("events", "2")});
  EXPECT_EQ(lost[0].outcome, Outcome::unknown) << lost[0].why;
  EXPECT_FALSE(subscription->take(1, soon()));
  proxy.heal();
  EXPECT_TRUE(poll_until([&] {
    const std::vector<Message> three{message("events", "3")};
    if (!publisher->publish(three, in(Millis(1'000)))) return false;
    const auto confirms = publisher->confirms(in(Millis(1'000))).value();
    return confirms.size() == 1 && confirms[0].outcome == Outcome::taken;
  }));
}

TEST_F(Rabbitmq, commands_work_and_show_no_password) {
  const TempDir dir("topology");
  std::ofstream(dir / "t.yaml") << "exchanges: {" << name("e") << ": {}}\nqueues: {" << name("q")
                                << ": {}}\nbindings: [{exchange: " << name("e")
                                << ", pattern: '#', queue: " << name("q") << "}]\n";
  const auto baton = [&](std::vector<std::string> words) {
    words.insert(words.begin(), BATON_PROGRAM);
    words.push_back((dir / "t.yaml").string());
    Finished done = run({.argv = std::move(words), .env = {{"BATON_BROKER", server().url()}}});
    EXPECT_EQ((done.out + done.err).find("guest:guest"), std::string::npos) << done.out;
    return done;
  };
  const auto has = [](const Finished& done, const std::string& text) {
    return done.out.find(text) != std::string::npos;
  };
  const auto plan = baton({"topology", "plan"});
  EXPECT_EQ(plan.status.code, 0) << plan.err;
  EXPECT_TRUE(has(plan, "make queue " + name("q") + ".dlq\n")) << plan.out;
  EXPECT_EQ(baton({"topology", "check"}).status.code, 1);
  EXPECT_EQ(baton({"topology", "apply"}).status.code, 0);
  const auto check = baton({"topology", "check"});
  EXPECT_EQ(check.status.code, 0);
  EXPECT_TRUE(has(check, "bindings-not-visible")) << check.out;
  EXPECT_TRUE(has(baton({"topology", "plan"}), "nothing to make"));
  EXPECT_TRUE(has(baton({"queue", "list"}), name("q") + ".dlq"));
  const auto doctor = baton({"broker", "doctor"});
  EXPECT_EQ(doctor.status.code, 0) << doctor.out;
  EXPECT_TRUE(has(doctor, "all is well")) << doctor.out;
}

}  // namespace
}  // namespace baton::test
