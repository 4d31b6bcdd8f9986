#include <algorithm>

#include "harness.h"

namespace baton::test {
namespace {

class Topologies : public BrokerTest {
 protected:
  [[nodiscard]] std::vector<std::string> codes(const Topology& topology) const {
    std::vector<std::string> all;
    auto findings = broker_->check(topology, soon()).value();
    for (const auto& finding : findings) {
      // What else there is to say about a broker depends on its kind.
      if (finding.code.starts_with("missing-") || finding.code == "other-arguments") {
        all.push_back(finding.code);
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(Topologies, declaring_again_changes_nothing) {
  const Topology topology = simple({"a", "b"});
  declare(topology);
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "kept")});
  declare(topology);
  EXPECT_EQ(codes(topology), std::vector<std::string>{});
  EXPECT_EQ(drain(*broker_, name("a"), 1), std::vector<std::string>{"kept"});
  EXPECT_EQ(drain(*broker_, name("b"), 1), std::vector<std::string>{"kept"});
}

TEST_F(Topologies, a_check_says_what_is_missing_and_makes_nothing) {
  const Topology topology = simple({"a"});
  const auto before = codes(topology);
  EXPECT_EQ(std::count(before.begin(), before.end(), "missing-exchange"), 1);
  EXPECT_GE(std::count(before.begin(), before.end(), "missing-queue"), 1);
  EXPECT_EQ(codes(topology), before);
  declare(topology);
  EXPECT_EQ(codes(topology), std::vector<std::string>{});
}

TEST_F(Topologies, a_queue_with_other_arguments_is_named_and_stays) {
  Topology topology = simple({"a"});
  topology.queues[0].max_length = 10;
  declare(topology);
  Topology other = topology;
  other.queues[0].max_length = 20;
  const auto declared = broker_->declare(other, soon());
  ASSERT_FALSE(declared);
  EXPECT_EQ(declared.error().code, Code::bad_store);
  const std::string& why = declared.error().message;
  EXPECT_NE(why.find(name("a")), std::string::npos) << why;
  EXPECT_TRUE(why.find("max_length") != std::string::npos ||
              why.find("max-length") != std::string::npos)
      << why;
  EXPECT_EQ(codes(other), std::vector<std::string>{"other-arguments"});
  EXPECT_EQ(codes(topology), std::vector<std::string>{});
  declare(topology);

  other = topology;
  other.queues[0].single_active = true;
  const auto active = broker_->declare(other, soon());
  ASSERT_FALSE(active);
  EXPECT_NE(active.error().message.find("single"), std::string::npos) << active.error().message;
}

TEST_F(Topologies, an_exchange_with_another_type_is_named_and_stays) {
  Topology topology = simple({"a"});
  declare(topology);
  Topology other = topology;
  other.exchanges[0].type = Topology::Type::headers;
  other.bindings[0].pattern = "x=1";
  const auto declared = broker_->declare(other, soon());
  ASSERT_FALSE(declared);
  EXPECT_NE(declared.error().message.find(name("events")), std::string::npos)
      << declared.error().message;
  EXPECT_NE(declared.error().message.find("type"), std::string::npos) << declared.error().message;
  declare(topology);
}

TEST_F(Topologies, a_queue_that_is_added_later_gets_what_is_published_then) {
  declare(simple({"a"}));
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "early")});
  declare(simple({"a", "b"}));
  publish_all(*publisher, {message("k", "late")});
  EXPECT_EQ(drain(*broker_, name("a"), 2), (std::vector<std::string>{"early", "late"}));
  EXPECT_EQ(drain(*broker_, name("b"), 1), std::vector<std::string>{"late"});
}

TEST_F(Topologies, refused_credentials_are_said_at_every_call_and_not_shown) {
  const std::string url = broker_factory().refused_url();
  if (url.empty()) GTEST_SKIP() << "this broker has no credentials";
  const auto broker = Broker::open(url).value();
  const Topology topology = simple({"a"});
  const auto expect_refused = [](const char* what, const auto& result) {
    ASSERT_FALSE(result) << what;
    EXPECT_EQ(result.error().code, Code::unauthorized) << what << ": " << result.error().message;
    EXPECT_FALSE(result.error().in_doubt) << what;
    EXPECT_EQ(result.error().message.find(BrokerFactory::kWrongPassword), std::string::npos)
        << result.error().message;
  };
  expect_refused("declare", broker->declare(topology, soon()));
  expect_refused("check", broker->check(topology, soon()));
  expect_refused("queues", broker->queues(topology, soon()));
  expect_refused("subscribe", broker->subscribe(name("a"), {}, soon()));
  auto publisher = broker->publisher().value();
  const std::vector<Message> messages{message("k", "x")};
  expect_refused("publish", publisher->publish(messages, soon()));
  EXPECT_FALSE(publisher->state().connected);
  EXPECT_FALSE(publisher->state().why.empty());
  EXPECT_EQ(publisher->state().why.find(BrokerFactory::kWrongPassword), std::string::npos);
  EXPECT_EQ(broker->describe().find(BrokerFactory::kWrongPassword), std::string::npos);
}

TEST_F(Topologies, one_that_is_malformed_is_refused) {
  Topology topology = simple({"a"});
  topology.bindings[0].queue = name("nowhere");
  const auto declared = broker_->declare(topology, soon());
  ASSERT_FALSE(declared);
  EXPECT_EQ(declared.error().code, Code::bad_request);
  EXPECT_FALSE(broker_->check(topology, soon()));
}

}  // namespace
}  // namespace baton::test
