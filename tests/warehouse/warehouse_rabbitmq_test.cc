// The events of the warehouse through RabbitMQ, with nodes and subscribers that are killed.

#include "support/rabbit_server.h"
#include "warehouse/warehouse_support.h"

namespace baton::test {
namespace {

class WarehouseRabbit : public WarehouseTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<RabbitServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  [[nodiscard]] std::string broker() const override { return server_->url(); }
  [[nodiscard]] std::int64_t effects_of(const std::string& id) const {
    return query(effects(), "SELECT count(*) FROM warehouse_effect WHERE counted_by = '" + id + "'")
        .front()
        .integer(0);
  }

  inline static std::unique_ptr<RabbitServer> server_;
};

TEST_F(WarehouseRabbit, each_row_has_one_event_and_one_effect_although_nodes_and_broker_crash) {
  configure({.ttl = "1000"});
  make_tables();
  Process writer({.argv = words("generate", {"--rate", "150", "--seconds", "5"})});
  for (const auto* id : {"a", "b"}) start(id, {"--poll-takes", "20ms"});
  for (const auto* id : {"first", "counter"}) start_counter(id);
  ASSERT_TRUE(poll_until([&] { return effects_of("first") > 0; }));
  for (const auto* id : {"a", "first"}) {
    node(id).kill(SIGKILL);
    ASSERT_TRUE(node(id).wait());
  }
  const auto before = effects_of("counter");
  ASSERT_TRUE(poll_until([&] { return effects_of("counter") > before; }, 2 * patience));
  server_->crash();
  server_->start();
  ASSERT_TRUE(writer.wait());
  expect_exact();
  EXPECT_EQ(count("SELECT count(*) FROM outbox_events WHERE retry_count > 0"), 0)
      << "an outage uses no attempt";
}

}  // namespace
}  // namespace baton::test
