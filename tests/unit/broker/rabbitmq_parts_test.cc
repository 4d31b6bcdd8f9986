// What RabbitMQ's URL says, what its refusals mean, and what is found wrong with a server.

#include <algorithm>

#include <gtest/gtest.h>

#include "broker/rabbitmq/examine.h"
#include "broker/rabbitmq/inequivalent.h"
#include "broker/rabbitmq/settings.h"

namespace baton::broker::rabbitmq {
namespace {

TEST(RabbitmqUrl, has_defaults) {
  const Settings settings = parse_settings("rabbitmq://").value();
  EXPECT_EQ(settings.host, "127.0.0.1");
  EXPECT_EQ(settings.port, 5672);
  EXPECT_EQ(settings.user, "guest");
  EXPECT_EQ(settings.vhost, "/");
  EXPECT_EQ(settings.heartbeat, Millis(30'000));
  EXPECT_EQ(parse_settings("rabbitmqs://mq").value().port, 5671);
}

TEST(RabbitmqUrl, is_taken_apart_and_shown_without_its_password) {
  const Settings settings =
      parse_settings("rabbitmqs://us%40er:p%2Fw%3A@[::1]:99/a%2Fb?heartbeat=5s&ca=/x%20y.pem")
          .value();
  EXPECT_EQ(settings.user, "us@er");
  EXPECT_EQ(settings.password, "p/w:");
  EXPECT_EQ(settings.host, "::1");
  EXPECT_EQ(settings.port, 99);
  EXPECT_EQ(settings.vhost, "a/b");
  EXPECT_EQ(settings.heartbeat, Millis(5'000));
  EXPECT_EQ(settings.tls.ca_file, "/x y.pem");
  EXPECT_EQ(settings.location, "rabbitmqs://us%40er@[::1]:99/a%2Fb");
}

TEST(RabbitmqUrl, that_is_malformed_is_refused_without_showing_it) {
  for (const char* url :
       {"rabbitmq://u:secret@h:99999/", "rabbitmq://u:secret@h:x/", "rabbitmq://u:sec/ret@h/v",
        "rabbitmq://u:secret%zz@h/", "rabbitmq://:secret@h/", "rabbitmq://u:secret@h/v/w",
        "rabbitmq://u:secret@h/v?heartbeat=1500ms", "rabbitmq://u:secret@h/v?heartbeat=0s",
        "rabbitmq://u:secret@h/v?ca=/x", "rabbitmqs://u:secret@h/v?cert=/x",
        "rabbitmqs://u:secret@h/v?verify=perhaps", "rabbitmq://u:secret@h/v?unknown=secret",
        "rabbitmq://u:secret@[::1/"}) {
    const auto settings = parse_settings(url);
    ASSERT_FALSE(settings) << url;
    EXPECT_EQ(settings.error().code, Code::bad_url) << url;
    EXPECT_EQ(settings.error().message.find("secret"), std::string::npos)
        << settings.error().message;
  }
}

TEST(RabbitmqRefusal, of_other_arguments_is_understood) {
  using Value = Inequivalent::Value;
  const auto parse = [](const std::string& tail) {
    return parse_inequivalent("PRECONDITION_FAILED - inequivalent arg '" + tail);
  };
  EXPECT_EQ(parse("x-max-length' for queue 'q' in vhost '/': received the value '20' of type "
                  "'signedint' but current is the value '10' of type 'signedint'"),
            (Inequivalent{"x-max-length", Value{"20", "signedint"}, Value{"10", "signedint"}}));
  EXPECT_EQ(parse("x-message-ttl' for queue 'q' in vhost '/': received none but current is the "
                  "value '60' of type 'long'"),
            (Inequivalent{"x-message-ttl", Value{"none", ""}, Value{"60", "long"}}));
  EXPECT_EQ(parse("type' for exchange 'e' in vhost '/': received 'headers' but current is 'topic'"),
            (Inequivalent{"type", Value{"headers", ""}, Value{"topic", ""}}));
  EXPECT_EQ(parse("a' for queue ' but current is ': received ' in vhost '/': received 'x' but "
                  "current is none"),
            (Inequivalent{"a", Value{"x", ""}, Value{"none", ""}}));
  EXPECT_TRUE(Value({"none", ""}).none());
  EXPECT_FALSE(Value({"none", "longstr"}).none());
}

TEST(RabbitmqRefusal, that_is_cut_off_or_something_else_is_not_misread) {
  for (const char* text :
       {"", "NOT_FOUND - no exchange 'x' in vhost '/'", "inequivalent arg '",
        "inequivalent arg 'a' for queue 'q' in vhost '/': received 'x' but cur...",
        "inequivalent arg 'a' for queue 'q' in vhost '/': received 'x' but current is 'y",
        "inequivalent arg 'a' for queue 'q' in vhost '/': received the value 'x' of type 'l but "
        "current is none"}) {
    EXPECT_FALSE(parse_inequivalent(text)) << text;
  }
}

std::vector<std::string> codes(const std::string& url, const Facts& facts,
                               const Topology& topology = {}) {
  std::vector<std::string> all;
  for (const auto& finding : examine(parse_settings(url).value(), topology, facts)) {
    all.push_back(finding.code);
  }
  return all;
}
using Codes = std::vector<std::string>;

TEST(RabbitmqExamination, knows_what_endangers_messages) {
  const std::string local = "rabbitmq://127.0.0.1";
  const Facts sound{.product = "RabbitMQ", .version = "3.10.8", .alarm = ""};
  EXPECT_EQ(codes(local, sound), Codes{});
  EXPECT_EQ(codes("rabbitmq://mq.example", sound), Codes{"clear-text-credentials"});
  EXPECT_EQ(codes("rabbitmqs://mq.example", sound), Codes{});
  EXPECT_EQ(codes("rabbitmqs://mq.example?verify=no", sound), Codes{"tls-unverified"});
  Facts facts = sound;
  for (const char* old : {"3.9.29", "2.8.1", "3.0"}) {
    facts.version = old;
    EXPECT_EQ(codes(local, facts), Codes{"old-server"}) << old;
  }
  for (const char* unclear : {"4.0.1", "3.13.0-rc", "", "x", "3"}) {
    facts.version = unclear;
    EXPECT_EQ(codes(local, facts), Codes{}) << unclear;
  }
  facts = sound;
  facts.alarm = "low on memory";
  EXPECT_EQ(codes(local, facts), Codes{"memory-alarm"});
  facts.alarm = "low on disk";
  EXPECT_EQ(codes(local, facts), Codes{"disk-alarm"});
  facts.alarm.reset();
  EXPECT_EQ(codes(local, facts), Codes{"alarm-not-visible"});
}

TEST(RabbitmqExamination, knows_full_queues_and_dead_letters) {
  const Topology topology{.queues = {{.name = "q", .max_length = 10}}};
  Facts facts{.alarm = "", .queues = {{.name = "q", .ready = 9}, {.name = "q.dlq"}}};
  EXPECT_EQ(codes("rabbitmq://", facts, topology), Codes{});
  facts.queues[0].ready = 10;
  facts.queues[1].ready = 1;
  EXPECT_EQ(codes("rabbitmq://", facts, topology), (Codes{"full-queue", "dead-letters"}));
}

}  // namespace
}  // namespace baton::broker::rabbitmq
