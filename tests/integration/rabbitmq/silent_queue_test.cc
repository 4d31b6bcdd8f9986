// A relay beside a quorum queue that confirms nothing, as one without the majority of its nodes.

#include <gtest/gtest.h>

#include "baton/memory_store.h"
#include "baton/outbox.h"
#include "baton/relay.h"
#include "rabbitmq_support.h"
#include "sql/transaction.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

class SilentQueue : public ::testing::Test {
 protected:
  SilentQueue() {
    install_outbox(database_->sqlite()).value();
    broker_
        ->declare(
            {.exchanges = {{.name = "silence"}},
             .queues = {{.name = "silence.stuck"}, {.name = "silence.sound"}},
             .bindings =
                 {{.exchange = "silence", .pattern = "order.stuck", .queue = "silence.stuck"},
                  {.exchange = "silence", .pattern = "order.sound", .queue = "silence.sound"}}},
            BootClock::now() + patience)
        .value();
  }

  static void ask_queue(const std::string& what) {
    server().ctl({"eval",
                  "{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue,"
                  " <<\"silence.stuck\">>)), sys:" +
                      what + "(amqqueue:get_pid(Q))."});
  }

  void add(const std::string& type, int count) const {
    database_
        ->transaction([&](sql::Transaction&) -> Result<void> {
          for (int i = 0; i < count; ++i) {
            const std::string aggregate = type + std::to_string(i);
            auto added = outbox_.add(database_->sqlite(), {.type = type, .aggregate = aggregate});
            if (!added) return added.error();
          }
          return {};
        })
        .value();
  }
  bool sent(const std::string& type, int count) const {
    return poll_until([&] {
      const auto rows = database_->query(
          "SELECT count(*) FROM outbox_events WHERE status = 'SENT' AND type = $1", {type});
      return rows && rows->front().integer(0) == count;
    });
  }

  // For a failure.
  std::string rows() const {
    std::string text;
    const auto groups = database_->query(
        "SELECT type || ' ' || status || ' ' || coalesce(last_error, '') || ' ' || count(*)"
        " FROM outbox_events GROUP BY type, status, last_error");
    if (!groups) return groups.error().message;
    for (const auto& row : *groups) text += row.text(0) + "\n";
    return text + server().ctl({"list_queues", "name", "messages", "state"});
  }

  TempDir dir_ = TempDir::in_memory("silent");
  const std::string url_ = "sqlite:" + (dir_ / "shop.db").string();
  std::unique_ptr<sql::Connection> database_ = sql::Connection::open(url_).value();
  const std::shared_ptr<Broker> broker_ = Broker::open(server().url()).value();
  const Outbox outbox_{{.exchange = "silence"}};
};

TEST_F(SilentQueue, delays_only_its_route_and_uses_no_attempt) {
  Relay relay(LockClient::make(make_memory_store(), {.owner = "one"}).value(), url_, broker_,
              {.window_messages = 4, .confirm_within = Millis(300)});
  relay.start().value();
  // A channel that has never published to such a queue waits for it, with all that it is given.
  add("OrderStuck", 1);
  ASSERT_TRUE(sent("OrderStuck", 1)) << rows();
  ask_queue("suspend");
  add("OrderStuck", 12);
  ASSERT_TRUE(poll_until([&] { return relay.stats().unconfirmed == 4; }));
  add("OrderSound", 12);
  EXPECT_TRUE(sent("OrderSound", 12)) << relay.stats().trouble << rows();
  EXPECT_TRUE(sent("OrderStuck", 1));
  ask_queue("resume");
  EXPECT_TRUE(sent("OrderStuck", 13)) << relay.stats().trouble << rows();
  const auto attempts = database_->query("SELECT max(retry_count) FROM outbox_events").value();
  EXPECT_EQ(attempts.front().integer(0), 0);
  EXPECT_EQ(relay.stats().failed, 0U);
}

}  // namespace
}  // namespace baton::test
