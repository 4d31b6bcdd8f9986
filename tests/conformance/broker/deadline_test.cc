#include <algorithm>

#include "harness.h"

namespace baton::test {
namespace {

// Far more than a call needs, far less than for ever.
constexpr Millis kLate{5'000};

class Deadlines : public BrokerTest {
 protected:
  // Calls with a deadline 300 ms ahead: it must return by then, and a little.
  template <typename Call>
  void returns_in_time(const char* what, Call&& call) {
    const Deadline by = in(Millis(300));
    call(by);
    EXPECT_LT(BootClock::now(), by + kLate) << what;
  }
};

TEST_F(Deadlines, waiting_for_nothing_ends_at_the_deadline) {
  declare(simple({"q"}));
  auto publisher = broker_->publisher().value();
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  returns_in_time("take", [&](Deadline by) {
    EXPECT_TRUE(subscription->take(1, by).value().empty());
    EXPECT_GE(BootClock::now(), by);
  });
  returns_in_time("confirms",
                  [&](Deadline by) { EXPECT_TRUE(publisher->confirms(by).value().empty()); });
  EXPECT_EQ(publish(*publisher, message("k", "x")).outcome, PublishOutcome::taken);
  EXPECT_EQ(take(*subscription, 1).size(), 1U);
}

TEST_F(Deadlines, a_broker_that_does_not_answer_holds_nobody_up) {
  const Topology topology = simple({"q"});
  declare(topology);
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "one"), message("k", "two")});
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  const auto deliveries = take(*subscription, 1);
  ASSERT_EQ(deliveries.size(), 1U);
  const std::vector<Message> messages{message("k", "three")};
  {
    const auto blocked = broker_factory().block();
    returns_in_time("publish", [&](Deadline by) { (void)publisher->publish(messages, by); });
    returns_in_time("confirms", [&](Deadline by) { (void)publisher->confirms(by); });
    returns_in_time("take", [&](Deadline by) { (void)subscription->take(1, by); });
    returns_in_time("settle", [&](Deadline by) {
      const Settlement ack{deliveries[0].tag, Settle::ack};
      (void)subscription->settle({&ack, 1}, by);
    });
    returns_in_time("declare", [&](Deadline by) { (void)broker_->declare(simple({"r"}), by); });
    returns_in_time("check", [&](Deadline by) { (void)broker_->check(topology, by); });
    returns_in_time("queues", [&](Deadline by) { (void)broker_->queues(topology, by); });
    returns_in_time("subscribe", [&](Deadline by) { (void)broker_->subscribe(name("q"), {}, by); });
    returns_in_time("the end of a subscription", [&](Deadline) { subscription.reset(); });
    returns_in_time("the end of a publisher", [&](Deadline) { publisher.reset(); });
  }
  // What was taken and not acknowledged is not lost by it. The acknowledgement may have arrived,
  // and the message that has no confirm may be there.
  auto after = broker_->subscribe(name("q"), {}, soon()).value();
  std::string body;
  for (const Deadline by = soon(); body != "two" && BootClock::now() < by;) {
    const auto next = take(*after, 1);
    if (!next.empty()) body = next.front().message.body;
  }
  EXPECT_EQ(body, "two");
}

TEST_F(Deadlines, an_alarm_is_shown_and_holds_nobody_up) {
  const Topology topology = simple({"q"});
  declare(topology);
  auto publisher = broker_->publisher().value();
  publish_all(*publisher, {message("k", "before")});
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  auto alarm = broker_factory().alarm();
  if (!alarm) GTEST_SKIP() << "this broker has no alarms";

  std::map<std::uint64_t, std::string> unconfirmed;
  std::set<std::string> promised{"before"};
  const auto take_confirms = [&](Millis limit) {
    const auto confirms = publisher->confirms(in(limit)).value();
    for (const Confirm& confirm : confirms) {
      EXPECT_EQ(confirm.outcome, PublishOutcome::taken) << confirm.why;
      promised.insert(unconfirmed[confirm.tag]);
      unconfirmed.erase(confirm.tag);
    }
  };
  int sent = 0;
  const auto publish_one = [&](Deadline by) {
    const std::string body = "during " + std::to_string(sent++);
    const std::vector<Message> one{message("k", body)};
    const auto tag = publisher->publish(one, by);
    if (tag) unconfirmed[*tag] = body;
    return tag;
  };
  // A broker may only notice it when something is published.
  EXPECT_TRUE(poll_until([&] {
    returns_in_time("publish", [&](Deadline by) { (void)publish_one(by); });
    returns_in_time("confirms", [&](Deadline) { take_confirms(Millis(100)); });
    return publisher->state().blocked;
  }));
  EXPECT_TRUE(publisher->state().connected);
  EXPECT_FALSE(publisher->state().why.empty());
  returns_in_time("publish", [&](Deadline by) {
    const auto refused = publish_one(by);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::unavailable);
    EXPECT_TRUE(refused.error().retryable);
    EXPECT_FALSE(refused.error().in_doubt);
  });
  const auto findings = broker_->check(topology, soon()).value();
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(),
                          [](const auto& finding) { return finding.code.ends_with("-alarm"); }));
  // Who consumes makes room: it goes on.
  EXPECT_EQ(bodies(take(*subscription, 1)), std::vector<std::string>{"before"});
  auto other = broker_->publisher().value();
  returns_in_time("publish", [&](Deadline by) {
    (void)other->publish(std::vector<Message>{message("k", "other")}, by);
  });
  returns_in_time("the end of a publisher", [&](Deadline) { other.reset(); });
  alarm.reset();

  EXPECT_TRUE(poll_until([&] {
    const auto tag = publish_one(in(Millis(1'000)));
    take_confirms(Millis(1'000));
    return tag && unconfirmed.empty() && !publisher->state().blocked;
  }));
  subscription.reset();
  std::set<std::string> found;
  auto after = broker_->subscribe(name("q"), {}, soon()).value();
  for (const Deadline by = soon(); BootClock::now() < by;) {
    const auto deliveries = take(*after, 1);
    ack(*after, deliveries);  // there may be more than it may have unsettled
    for (const auto& body : bodies(deliveries)) found.insert(body);
    if (std::includes(found.begin(), found.end(), promised.begin(), promised.end())) break;
  }
  EXPECT_TRUE(std::includes(found.begin(), found.end(), promised.begin(), promised.end()));
}

}  // namespace
}  // namespace baton::test
