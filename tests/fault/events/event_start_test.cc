// Services that start late: what was published before is kept for them.

#include <gtest/gtest.h>

#include "event_system.h"
#include "support/event_topology.h"
#include "support/wait.h"

namespace baton::test {
namespace {

// The relay declares the topology, in which the queue of every subscriber is.
TEST(EventStart, a_subscriber_whose_service_first_starts_after_the_events_misses_nothing) {
  const TempDir dir = TempDir::in_memory("events");
  EventSystem system(event_files(dir), 3, BATON_EVENT_REPLICA);
  system.add_relay();
  for (int i = 0; i < 30; ++i) system.write_one("a" + std::to_string(1 + i % 3), "Counted");
  const auto unsent = "SELECT count(*) FROM outbox_events WHERE status <> 'SENT'";
  ASSERT_TRUE(poll_until([&] {
    return system.shop().query(unsent).value().front().integer(0) == 0;
  })) << system.relay(0).err();
  EXPECT_EQ(system.effects(), 0U);
  system.watch();
  system.add_consumer();
  const EventVerdict verdict = system.finish(patience);
  EXPECT_EQ(verdict.problems, std::vector<std::string>());
  EXPECT_EQ(verdict.effects, 30U);
}

}  // namespace
}  // namespace baton::test
