// Streams: append, versions, reading; what is refused.

#include <gtest/gtest.h>

#include "eventlog/log_session.h"
#include "integration/eventlog/log_database.h"

namespace baton::test {
namespace {

class EventLogTest : public ::testing::TestWithParam<DatabaseKind> {
 protected:
  LogDatabase database_{GetParam()};
  std::unique_ptr<sql::Connection> connection_ = database_.connect();

  // The code of an append of one event in a transaction of its own.
  Code append_code(const std::string& stream, const Event& event,
                   std::optional<std::int64_t> expected = {}) {
    auto transaction = sql::Transaction::begin(*connection_);
    auto done = append(*connection_, stream, {event}, expected);
    EXPECT_FALSE(done);
    return done ? Code::cancelled : done.error().code;
  }
};

TEST_P(EventLogTest, a_stream_numbers_its_events_and_gives_them_back) {
  const Event event{.type = "OrderPlaced",
                    .aggregate_type = "Order",
                    .exchange = "orders",
                    .payload = R"({"total":7})",
                    .headers = {{"x", "y"}},
                    .correlation_id = "c",
                    .causation_id = "d",
                    .version = 3};
  Appended appended;
  connection_
      ->transaction([&](sql::Transaction&) -> Result<void> {
        appended = append(*connection_, "order-7", {event, {.type = "OrderPaid"}}, 0).value();
        return {};
      })
      .value();
  EXPECT_EQ(appended.version, 2);
  ASSERT_EQ(appended.ids.size(), 2U);
  append_one(*connection_, "order-8");
  const auto events = read(*connection_, "order-7");
  ASSERT_EQ(events.size(), 2U);
  Event expected = event;
  expected.id = appended.ids[0];
  expected.aggregate = "order-7";
  expected.routing_key = "order.placed";
  EXPECT_EQ(events[0].event, expected);
  EXPECT_EQ(events[0].stream_version, 1);
  EXPECT_EQ(events[1].stream_version, 2);
  EXPECT_EQ(events[1].position, appended.position);
  EXPECT_LT(events[0].position, events[1].position);
  EXPECT_EQ(read(*connection_, "order-7", {.after_version = 1}).size(), 1U);
  EXPECT_EQ(read(*connection_, "order-7", {.limit = 1}).size(), 1U);
  EXPECT_TRUE(read(*connection_, "order-9").empty());
}

TEST_P(EventLogTest, a_version_that_somebody_else_has_passed_is_superseded) {
  append_one(*connection_, "s");
  EXPECT_EQ(append_code("s", {.type = "T"}, 0), Code::superseded);
  EXPECT_EQ(append_code("s", {.type = "T"}, 2), Code::superseded);
  EXPECT_EQ(append_code("new", {.type = "T"}, 1), Code::superseded);
  connection_
      ->transaction([&](sql::Transaction&) -> Result<void> {
        EXPECT_FALSE(append(*connection_, "s", {{.type = "T"}}, 0));
        // The transaction goes on.
        EXPECT_EQ(append(*connection_, "s", {{.type = "T"}}, 1).value().version, 2);
        return {};
      })
      .value();
  EXPECT_EQ(read(*connection_, "s").size(), 2U);
}

TEST_P(EventLogTest, what_is_rolled_back_was_never_there) {
  {
    auto transaction = sql::Transaction::begin(*connection_);
    append(*connection_, "s", {{.type = "T"}, {.type = "T"}}).value();
  }
  EXPECT_EQ(append_one(*connection_, "s").version, 1);
}

TEST_P(EventLogTest, bad_events_are_refused) {
  EXPECT_EQ(append_code("", {.type = "T"}), Code::bad_request);
  EXPECT_EQ(append_code("s", {.type = ""}), Code::bad_request);
  EXPECT_EQ(append_code("s", {.type = "T", .payload = "{"}), Code::bad_request);
  EXPECT_EQ(append_code("s", {.type = "T", .aggregate = "other"}), Code::bad_request);
  EXPECT_EQ(append_code(std::string(kMaxEventText + 1, 's'), {.type = "T"}), Code::bad_request);
  const auto outside = append(*connection_, "s", {{.type = "T"}});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, Code::bad_request);
  const Event same{.id = append_one(*connection_, "s").ids[0], .type = "T"};
  EXPECT_EQ(append_code("s", same), Code::bad_request);
  auto transaction = sql::Transaction::begin(*connection_);
  EXPECT_EQ(append(*connection_, "s", {}).error().code, Code::bad_request);
  EXPECT_EQ(
      append(*connection_, "s", std::vector<Event>(kMaxAppend + 1, {.type = "T"})).error().code,
      Code::bad_request);
}

TEST_P(EventLogTest, a_database_without_the_log_says_how_to_make_it) {
  connection_->query("DROP TABLE event_log").value();
  connection_->query("DROP TABLE event_log_version").value();
  auto transaction = sql::Transaction::begin(*connection_);
  const auto refused = append(*connection_, "s", {{.type = "T"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_store);
  EXPECT_NE(refused.error().message.find("baton processor install"), std::string::npos)
      << refused.error().message;
}

TEST_P(EventLogTest, installing_again_keeps_the_events) {
  append_one(*connection_, "s");
  LogDatabase::install(*connection_);
  EXPECT_EQ(read(*connection_, "s").size(), 1U);
  connection_->query("UPDATE event_log_version SET version = 99").value();
  const auto refused = connection_->postgres() != nullptr
                           ? install_event_log(connection_->postgres())
                           : install_event_log(connection_->sqlite());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_store);
}

INSTANTIATE_TEST_SUITE_P(On, EventLogTest,
                         ::testing::Values(DatabaseKind::postgres, DatabaseKind::sqlite),
                         [](const auto& of) {
                           return of.param == DatabaseKind::postgres ? "postgres" : "sqlite";
                         });

}  // namespace
}  // namespace baton::test
