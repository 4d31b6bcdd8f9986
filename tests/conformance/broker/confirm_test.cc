#include "harness.h"

namespace baton::test {
namespace {

class Confirms : public BrokerTest {};

TEST_F(Confirms, a_message_that_no_queue_wants_is_returned) {
  Topology topology = simple({});
  topology.queues.push_back({.name = name("q")});
  topology.bindings.push_back({.exchange = name("events"), .pattern = "a.b", .queue = name("q")});
  declare(topology);
  auto publisher = broker_->publisher().value();
  const auto confirms =
      publish(*publisher, {message("a.b", "1"), message("a.c", "2"), message("a.b", "3")});
  EXPECT_EQ(confirms[0].outcome, PublishOutcome::taken) << confirms[0].why;
  EXPECT_EQ(confirms[1].outcome, PublishOutcome::returned);
  EXPECT_FALSE(confirms[1].why.empty());
  EXPECT_EQ(confirms[2].outcome, PublishOutcome::taken) << confirms[2].why;
  EXPECT_EQ(drain(*broker_, name("q"), 2), (std::vector<std::string>{"1", "3"}));
}

TEST_F(Confirms, an_unknown_exchange_is_the_fault_of_the_message) {
  declare(simple({"q"}));
  auto publisher = broker_->publisher().value();
  Message lost = message("k", "lost");
  lost.exchange = name("nowhere");
  const Confirm confirm = publish(*publisher, lost);
  EXPECT_EQ(confirm.outcome, PublishOutcome::returned);
  EXPECT_NE(confirm.why.find(name("nowhere")), std::string::npos) << confirm.why;
  // The publisher goes on.
  EXPECT_EQ(publish(*publisher, message("k", "next")).outcome, PublishOutcome::taken);
}

TEST_F(Confirms, a_message_that_is_too_large_is_returned) {
  declare(simple({"q"}));
  auto publisher = broker_->publisher().value();
  Message large = message("k", std::string(kMaxMessageBody + 1, 'x'));
  large.id = "large";
  EXPECT_EQ(publish(*publisher, large).outcome, PublishOutcome::returned);
  Message long_key = message(std::string(256, 'k'), "key");
  EXPECT_EQ(publish(*publisher, long_key).outcome, PublishOutcome::returned);
  Message many = message("k", "headers");
  for (int i = 0; i < 1'000; ++i) many.headers["h" + std::to_string(i)] = std::string(100, 'v');
  EXPECT_EQ(publish(*publisher, many).outcome, PublishOutcome::returned);
  Message largest = message("k", std::string(kMaxMessageBody, 'x'));
  largest.id = "largest";
  EXPECT_EQ(publish(*publisher, largest).outcome, PublishOutcome::taken);
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  const auto deliveries = take(*subscription, 1);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_TRUE(deliveries[0].message == largest);
}

TEST_F(Confirms, a_full_queue_refuses_and_the_others_take) {
  Topology topology = simple({"full", "other"});
  topology.queues[0].max_length = 5;
  declare(topology);
  auto publisher = broker_->publisher().value();
  // A broker may notice a little late that a queue is full.
  std::vector<std::string> sent;
  bool refused = false;
  for (int i = 0; i < 20 && !refused; ++i) {
    sent.push_back(std::to_string(100 + i));
    const Confirm confirm = publish(*publisher, message("k", sent.back()));
    refused = confirm.outcome == PublishOutcome::refused;
    if (!refused) {
      EXPECT_EQ(confirm.outcome, PublishOutcome::taken) << confirm.why;
    }
  }
  ASSERT_TRUE(refused);
  EXPECT_GE(sent.size(), 6U);
  EXPECT_EQ(drain(*broker_, name("other"), sent.size()), sent);
  // Once there is room it takes again.
  EXPECT_GE(drain(*broker_, name("full"), 5).size(), 5U);
  EXPECT_TRUE(poll_until(
      [&] { return publish(*publisher, message("k", "again")).outcome == PublishOutcome::taken; }));
}

TEST_F(Confirms, tags_are_never_used_twice) {
  declare(simple({"q"}));
  auto publisher = broker_->publisher().value();
  std::set<std::uint64_t> tags;
  std::size_t sent = 0;
  for (int i = 0; i < 5; ++i) {
    const std::vector<Message> batch(7, message("k", "x"));
    publisher->publish(batch, soon()).value();
    sent += batch.size();
  }
  const Deadline by = soon();
  std::size_t confirmed = 0;
  while (confirmed < sent && BootClock::now() < by) {
    auto confirms = publisher->confirms(by).value();
    for (const Confirm& confirm : confirms) {
      EXPECT_TRUE(tags.insert(confirm.tag).second);
      ++confirmed;
    }
  }
  EXPECT_EQ(tags.size(), sent);
}

TEST_F(Confirms, any_byte_travels) {
  declare(simple({"q"}));
  auto publisher = broker_->publisher().value();
  Message hostile = message("k.ü", "");
  hostile.id = "id with spaces; DROP TABLE message";
  for (int i = 0; i < 256; ++i) hostile.body += static_cast<char>(i);
  hostile.body += std::string("\0\xff\xfe\xc0\x80", 5);
  hostile.content_type = "application/x-odd; a=\"b\"";
  hostile.headers = {{"plain", "value"},       {"empty", ""},
                     {"ünï", "cødé ☃"},        {"quote'\"", "a=b; c\\d"},
                     {"line", "one\ntwo\r\n"}, {"tab\tname", "\x01\x7f"}};
  Message empty = message("k", "");
  publish_all(*publisher, {hostile, empty});
  auto subscription = broker_->subscribe(name("q"), {}, soon()).value();
  const auto deliveries = take(*subscription, 2);
  ASSERT_EQ(deliveries.size(), 2U);
  EXPECT_EQ(deliveries[0].message.body, hostile.body);
  EXPECT_EQ(deliveries[0].message.headers, hostile.headers);
  EXPECT_TRUE(deliveries[0].message == hostile);
  EXPECT_TRUE(deliveries[1].message == empty);
}

}  // namespace
}  // namespace baton::test
