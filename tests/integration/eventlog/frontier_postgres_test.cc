// How far a reader reads on a real server.

#include <gtest/gtest.h>

#include "eventlog/log_session.h"
#include "integration/eventlog/log_database.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

using eventlog::LogSession;
using eventlog::Position;

std::unique_ptr<LogSession> open_session(const std::string& url, const std::string& name,
                                         Token token = 1) {
  return LogSession::open(url,
                          {.name = name,
                           .kind = "view",
                           .tables = {},
                           .owner = "test",
                           .token = token,
                           .fence = {{"DEFAULT:leader:" + name, Mode::X, token}}},
                          Millis(10'000))
      .value();
}

// A look, then a batch: what it handled, and its progress is saved.
std::vector<Position> handle(LogSession& session) {
  const auto row = session.look().value();
  auto transaction = session.begin().value();
  const auto events = session.read(transaction, row.position, session.frontier(), 100).value();
  std::vector<Position> positions;
  for (const auto& event : events) positions.push_back(event.position);
  if (!positions.empty()) {
    session.save(transaction, positions.back()).value();
    transaction.commit().value();
  }
  return positions;
}

using Positions = std::vector<Position>;

class FrontierOnPostgres : public ::testing::Test {
 protected:
  LogDatabase database_{DatabaseKind::postgres};
  std::unique_ptr<sql::Connection> early_ = database_.connect();
  std::unique_ptr<sql::Connection> late_ = database_.connect();
};

TEST_F(FrontierOnPostgres, a_late_commit_is_not_skipped) {
  auto session = open_session(database_.url(), "v");
  auto transaction = sql::Transaction::begin(*early_).value();
  const Position first = append(*early_, "a", {{.type = "T"}}).value().position;
  const Position second = append_one(*late_, "b").position;
  ASSERT_LT(first, second);
  EXPECT_EQ(handle(*session), Positions{});
  const Position third = append_one(*late_, "b").position;
  EXPECT_EQ(handle(*session), Positions{});
  transaction.commit().value();
  EXPECT_EQ(handle(*session), (Positions{first, second, third}));
}

TEST_F(FrontierOnPostgres, a_reader_that_starts_beside_an_open_transaction_waits_for_it) {
  const Position before = append_one(*late_, "b").position;
  auto transaction = sql::Transaction::begin(*early_).value();
  const Position first = append(*early_, "a", {{.type = "T"}}).value().position;
  const Position second = append_one(*late_, "b").position;
  auto session = open_session(database_.url(), "v");
  EXPECT_EQ(handle(*session), Positions{});
  transaction.commit().value();
  EXPECT_EQ(handle(*session), (Positions{before, first, second}));
}

TEST_F(FrontierOnPostgres, what_is_rolled_back_holds_up_nobody) {
  auto session = open_session(database_.url(), "v");
  {
    auto transaction = sql::Transaction::begin(*early_);
    append(*early_, "a", {{.type = "T"}}).value();
  }
  const Position next = append_one(*late_, "b").position;
  EXPECT_EQ(handle(*session), Positions{next});
}

TEST_F(FrontierOnPostgres, only_a_transaction_that_opened_the_log_stalls_and_it_is_named) {
  auto session = open_session(database_.url(), "v");
  ASSERT_EQ(handle(*session), Positions{});
  early_->query("CREATE TABLE other (n int)").value();
  auto elsewhere = sql::Transaction::begin(*early_).value();
  early_->query("INSERT INTO other VALUES (1)").value();
  const Position first = append_one(*late_, "b").position;
  EXPECT_EQ(handle(*session), Positions{first});
  EXPECT_EQ(session->stalled_by().value(), "");

  append(*early_, "a", {{.type = "T"}}).value();
  append_one(*late_, "b");
  EXPECT_EQ(handle(*session), Positions{});
  const std::string pid = early_->query("SELECT pg_backend_pid()").value().front().text(0);
  EXPECT_EQ(session->stalled_by().value().rfind("pid " + pid + ", open for ", 0), 0U)
      << session->stalled_by().value();
}

TEST_F(FrontierOnPostgres, a_row_in_a_child_of_the_log_is_waited_for) {
  early_->query("CREATE TABLE leaf (LIKE event_log INCLUDING DEFAULTS);").value();
  early_->query("ALTER TABLE leaf ALTER position SET DEFAULT nextval('event_log_position_seq')")
      .value();
  early_->query("ALTER TABLE leaf INHERIT event_log").value();
  auto session = open_session(database_.url(), "v");
  auto transaction = sql::Transaction::begin(*early_).value();
  early_
      ->query(
          "INSERT INTO leaf (stream, stream_version, event_id, type, aggregate_type, exchange,"
          " routing_key, payload, headers, version)"
          " VALUES ('leaf', 1, gen_random_uuid(), 'T', '', '', 't', '{}', '{}', 1)")
      .value();
  const Position second = append_one(*late_, "b").position;
  EXPECT_EQ(handle(*session), Positions{});
  transaction.commit().value();
  EXPECT_EQ(handle(*session), (Positions{second - 1, second}));
}

TEST_F(FrontierOnPostgres, a_former_owner_that_was_paused_writes_no_progress) {
  auto former = open_session(database_.url(), "v", 5);
  append_one(*late_, "b");
  ASSERT_EQ(handle(*former).size(), 1U);
  append_one(*late_, "b");
  auto owner = open_session(database_.url(), "v", 6);
  ASSERT_TRUE(former->look());
  const auto refused = former->begin();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::fenced);
  EXPECT_EQ(former->save_failure(2, 1, true, "x").error().code, Code::fenced);
  EXPECT_EQ(handle(*owner).size(), 1U);
}

TEST_F(FrontierOnPostgres, a_sequence_that_caches_is_refused) {
  early_->query("ALTER SEQUENCE event_log_position_seq CACHE 10").value();
  auto refused = LogSession::open(
      database_.url(), {.name = "v", .kind = "view", .tables = {}, .owner = "", .fence = {}},
      Millis(10'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_store);
}

TEST_F(FrontierOnPostgres, a_sequence_that_was_set_back_is_told) {
  auto session = open_session(database_.url(), "v");
  for (int i = 0; i < 3; ++i) append_one(*early_, "a");
  ASSERT_EQ(handle(*session).size(), 3U);
  early_->script("TRUNCATE event_log, event_stream RESTART IDENTITY").value();
  append_one(*early_, "a");
  const auto looked = session->look();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, Code::bad_store);
  EXPECT_NE(looked.error().message.find("sequence"), std::string::npos);
  early_->query("UPDATE event_processor SET position = 0").value();
  EXPECT_EQ(handle(*session), Positions{1});
}

TEST(FrontierOnItsOwnServer, a_prepared_transaction_stalls_also_after_a_crash) {
  PostgresServer server({.settings = {{"max_prepared_transactions", "4"}}});
  auto writer = sql::Connection::open(server.url()).value();
  LogDatabase::install(*writer);
  auto session = open_session(server.url(), "v");
  ASSERT_EQ(handle(*session), Positions{});
  writer->query("BEGIN").value();
  const Position first = append(*writer, "a", {{.type = "T"}}).value().position;
  ASSERT_EQ(handle(*session), Positions{});
  writer->query("PREPARE TRANSACTION 'two'").value();
  Position second = append_one(*writer, "b").position;
  EXPECT_EQ(handle(*session), Positions{});
  EXPECT_EQ(session->stalled_by().value().rfind("prepared transaction 'two', open for ", 0), 0U)
      << session->stalled_by().value();

  server.crash();
  server.start();
  EXPECT_FALSE(session->look());
  session = open_session(server.url(), "v");
  writer = sql::Connection::open(server.url()).value();
  EXPECT_EQ(handle(*session), Positions{});
  const Position third = append_one(*writer, "b").position;
  EXPECT_EQ(handle(*session), Positions{});
  writer->query("COMMIT PREPARED 'two'").value();
  EXPECT_EQ(handle(*session), (Positions{first, second, third}));

  server.stop();
  server.make_standby();
  server.start();
  EXPECT_FALSE(LogSession::open(
      server.url(),
      {.name = "v", .kind = "view", .tables = {}, .owner = "", .token = 9, .fence = {}},
      Millis(10'000)));
  auto reader = sql::Connection::open(server.url()).value();
  auto transaction = sql::Transaction::begin(*reader);
  ASSERT_TRUE(transaction);
  const auto refused = append(*reader, "a", {{.type = "T"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
}

}  // namespace
}  // namespace baton::test
