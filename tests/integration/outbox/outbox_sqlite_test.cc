// The outbox in an SQLite file.

#include <gtest/gtest.h>

#include "baton/outbox.h"
#include "sql/connection.h"
#include "support/temp_dir.h"

namespace baton {
namespace {

class SqliteOutbox : public ::testing::Test {
 protected:
  SqliteOutbox() { install_outbox(database_->sqlite()).value(); }

  [[nodiscard]] std::unique_ptr<sql::Connection> open(const std::string& name = "data.db") const {
    return sql::Connection::open("sqlite:" + (dir_ / name).string()).value();
  }
  void run(const std::string& sql) { database_->script(sql).value(); }
  std::string ask(const std::string& sql) { return database_->query(sql).value().front().text(0); }
  std::string events() { return ask("SELECT count(*) FROM outbox_events"); }
  template <typename T>
  void refused(const Result<T>& result, Code code, const std::string& part) {
    ASSERT_FALSE(result) << part;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  }

  test::TempDir dir_{"outbox"};
  std::unique_ptr<sql::Connection> database_ = open();
  const Outbox outbox_{{.exchange = "documents"}};
  const Event event_{.type = "DocumentUploaded", .aggregate = "doc-1", .payload = R"({"a":1})"};
};

TEST_F(SqliteOutbox, an_event_is_there_if_and_only_if_its_transaction_commits) {
  run("BEGIN IMMEDIATE");
  ASSERT_TRUE(outbox_.add(database_->sqlite(), event_));
  run("ROLLBACK");
  EXPECT_EQ(events(), "0");
  run("BEGIN IMMEDIATE");
  const auto id = outbox_.add(database_->sqlite(), event_).value();
  run("COMMIT");
  EXPECT_EQ(ask("SELECT event_id || ' ' || type || ' ' || aggregate_id || ' ' || exchange || ' ' ||"
                " routing_key || ' ' || payload || ' ' || headers || ' ' || version || ' ' ||"
                " status || ' ' || (correlation_id IS NULL) FROM outbox_events"),
            id + R"( DocumentUploaded doc-1 documents document.uploaded {"a":1} {} 1 PENDING 1)");
}

TEST_F(SqliteOutbox, several_events_are_added_in_their_order_or_not_at_all) {
  std::vector<Event> several(3, event_);
  for (std::size_t i = 0; i < several.size(); ++i) several[i].aggregate = std::to_string(i);
  run("BEGIN IMMEDIATE");
  EXPECT_EQ(outbox_.add_all(database_->sqlite(), several).value().size(), 3U);
  EXPECT_TRUE(outbox_.add_all(database_->sqlite(), {}).value().empty());
  several[1].id = several[2].id = make_event_id();
  refused(outbox_.add_all(database_->sqlite(), several), Code::bad_request, "id already");
  several[2].id.clear();
  several[2].payload = "{";
  refused(outbox_.add_all(database_->sqlite(), several), Code::bad_request, "not JSON");
  run("COMMIT");
  EXPECT_EQ(ask("SELECT group_concat(aggregate_id, ' ') FROM"
                " (SELECT aggregate_id FROM outbox_events ORDER BY position)"),
            "0 1 2");
}

TEST_F(SqliteOutbox, an_add_outside_of_a_transaction_is_refused) {
  refused(outbox_.add(database_->sqlite(), event_), Code::bad_request, "BEGIN IMMEDIATE first");
  refused(outbox_.add(static_cast<sqlite3*>(nullptr), event_), Code::bad_request, "no database");
  EXPECT_EQ(events(), "0");
}

TEST_F(SqliteOutbox, an_event_without_an_exchange_is_refused) {
  Event named = event_;
  named.exchange = "documents";
  run("BEGIN IMMEDIATE");
  refused(Outbox().add(database_->sqlite(), event_), Code::bad_request, "needs an exchange");
  refused(Outbox().add_all(database_->sqlite(), std::vector{named, event_}), Code::bad_request,
          "needs an exchange");
  EXPECT_TRUE(Outbox().add(database_->sqlite(), named));
  run("COMMIT");
  EXPECT_EQ(events(), "1");
}

TEST_F(SqliteOutbox, an_id_that_is_there_is_refused) {
  Event named = event_;
  named.id = make_event_id();
  run("BEGIN IMMEDIATE");
  ASSERT_TRUE(outbox_.add(database_->sqlite(), named));
  refused(outbox_.add(database_->sqlite(), named), Code::bad_request, "id already");
  run("COMMIT");
  EXPECT_EQ(events(), "1");
}

TEST_F(SqliteOutbox, missing_tables_are_named_with_the_command_that_makes_them) {
  auto other = open("other.db");
  other->script("BEGIN IMMEDIATE").value();
  refused(outbox_.add(other->sqlite(), event_), Code::bad_store, "baton outbox install");
}

TEST_F(SqliteOutbox, installing_again_changes_nothing_and_works_inside_a_transaction) {
  run("BEGIN IMMEDIATE");
  ASSERT_TRUE(outbox_.add(database_->sqlite(), event_));
  ASSERT_TRUE(install_outbox(database_->sqlite()));
  run("COMMIT");
  ASSERT_TRUE(install_outbox(database_->sqlite()));
  EXPECT_EQ(events(), "1");
}

TEST_F(SqliteOutbox, tables_of_a_newer_version_are_refused) {
  run("UPDATE outbox_version SET version = 99");
  refused(install_outbox(database_->sqlite()), Code::bad_store, "newer Baton");
  run("BEGIN IMMEDIATE");
  refused(outbox_.add(database_->sqlite(), event_), Code::bad_store, "newer Baton");
  run("COMMIT");
  EXPECT_EQ(events(), "0");
}

TEST_F(SqliteOutbox, a_transaction_that_has_been_overtaken_is_told_to_repeat) {
  run("BEGIN");
  (void)events();
  auto other = open();
  other->script("BEGIN IMMEDIATE").value();
  ASSERT_TRUE(outbox_.add(other->sqlite(), event_));
  other->script("COMMIT").value();
  const auto added = outbox_.add(database_->sqlite(), event_);
  refused(added, Code::unavailable, "repeat all of it");
  EXPECT_TRUE(added.error().retryable);
}

}  // namespace
}  // namespace baton
