// baton outbox: what an operator types, and reads.

#include <fstream>

#include <sqlite3.h>

#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

constexpr const char* kId = "01990a3e-0000-7000-8000-00000000000";  // and a digit

class CliOutbox : public CliTest {
 protected:
  CliOutbox() { std::ofstream(dir_ / "shop.db").flush(); }

  std::string database() const { return "sqlite:" + (dir_ / "shop.db").string(); }

  Words on(Words words) const {
    words.insert(words.begin(), "outbox");
    words.insert(words.end(), {"--database", database()});
    return words;
  }
  Finished outbox(Words words) const { return baton(on(std::move(words))); }

  void run_sql(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ / "shop.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    char* problem = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &problem), SQLITE_OK)
        << problem;
    sqlite3_free(problem);
    sqlite3_close(database);
  }

  // An event that has failed and holds back another, one that is new, and a relay that reads.
  void leave_events() const {
    ASSERT_EQ(outbox({"install"}).status.code, 0);
    const std::string columns =
        "INSERT INTO outbox_events (event_id, type, aggregate_id, routing_key, status, retry_count,"
        " next_retry_at, last_error, payload) VALUES ('" +
        std::string(kId);
    run_sql(columns +
            "1', 'DocumentUploaded', 'doc-1', 'k', 'FAILED', 10, 9223372036854775807,"
            " 'NO_ROUTE', '{\"a\":\"\x1b[31m\"}')");
    run_sql(columns +
            "2', 'DocumentUploaded', 'doc-1', 'k', 'PENDING', 0, 9223372036854775807, NULL, '{}')");
    run_sql(columns + "3', 'DocumentDeleted', 'doc-2', 'k', 'PENDING', 0, NULL, NULL, '{}')");
    run_sql(
        "UPDATE outbox_lane SET updated_at ="
        " CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)");
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(CliOutbox, a_database_without_an_outbox_is_told_how_to_get_one) {
  refuses(on({"status"}), 1, "bad_store", "make it with: baton outbox install --database URL");
  EXPECT_EQ(outbox({"install"}).status.code, 0);
  EXPECT_EQ(outbox({"install"}).out, "the outbox is in " + database() + "\n");
}

TEST_F(CliOutbox, a_database_that_is_not_there_is_not_made) {
  refuses({"outbox", "install", "--database", "sqlite:" + (dir_ / "typo.db").string()}, 1,
          "bad_store", "typo.db");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "typo.db"));
  refuses({"outbox", "status", "--database", "mysql://db"}, 2, "bad_url", "write sqlite:PATH");
  refuses({"outbox", "status"}, 2, "usage", "--database");
}

TEST_F(CliOutbox, status_begins_with_one_line_and_exits_with_1_if_something_is_stuck) {
  leave_events();
  const auto stuck = outbox({"status"});
  EXPECT_EQ(stuck.status.code, 1);
  EXPECT_EQ(stuck.out.rfind("stuck: 1 event has failed and holds back 1 more (NO_ROUTE)\n", 0), 0U)
      << stuck.out;
  EXPECT_TRUE(has(stuck.out, "FAILED     all attempts used      1")) << stuck.out;
  EXPECT_TRUE(has(outbox({"status", "--json"}).out, R"({"stuck":true,"why":"1 event has failed)"));
  run_sql("UPDATE outbox_events SET status = 'SENT', next_retry_at = NULL");
  const auto well = outbox({"status"});
  EXPECT_EQ(well.status.code, 0);
  EXPECT_EQ(well.out.rfind("ok: all events are published\n", 0), 0U) << well.out;
}

TEST_F(CliOutbox, watching_tells_what_changes) {
  leave_events();
  auto watching = start(on({"status", "--watch"}));
  ASSERT_TRUE(watching->wait_for_out("stuck: 1 event has failed")) << watching->err();
  run_sql("UPDATE outbox_events SET status = 'SENT', next_retry_at = NULL");
  EXPECT_TRUE(watching->wait_for_out("ok: all events are published")) << watching->err();
}

TEST_F(CliOutbox, a_list_shows_what_is_not_published_and_no_payload) {
  leave_events();
  run_sql("UPDATE outbox_events SET status = 'SENT' WHERE type = 'DocumentDeleted'");
  const auto list = outbox({"list"});
  EXPECT_EQ(list.status.code, 0);
  EXPECT_TRUE(has(list.out, std::string(kId) + "1  FAILED")) << list.out;
  EXPECT_TRUE(has(list.out, std::string(kId) + "2  PENDING")) << list.out;
  EXPECT_FALSE(has(list.out, std::string(kId) + "3")) << list.out;
  EXPECT_FALSE(has(list.out, "[31m")) << list.out;
  EXPECT_TRUE(has(outbox({"list", "--all"}).out, std::string(kId) + "3  SENT"));
  EXPECT_TRUE(has(outbox({"list", "--status", "sent"}).out, std::string(kId) + "3"));
  EXPECT_EQ(outbox({"list", "--aggregate", "doc-9"}).out, "no events match\n");
  const auto page = outbox({"list", "--limit", "1", "--json"}).out;
  EXPECT_TRUE(has(page, R"("next":1})")) << page;
  EXPECT_TRUE(has(outbox({"list", "--after", "1"}).out, std::string(kId) + "2"));
  refuses(on({"list", "--after", "x"}), 2, "bad_request", "--after");
  refuses(on({"list", "--status", "BOGUS"}), 2, "bad_request", "PENDING, SENT, FAILED, DISCARDED");
  refuses(on({"retry", "--status", "SENT"}), 2, "bad_request", "there are PENDING, FAILED");
  refuses(on({"list", "--limit", "0"}), 2, "bad_request", "--limit");
  refuses(on({"list", "42"}), 2, "bad_request", "UUID");
  refuses(on({"list", "--older-than", "x"}), 2, "bad_request", "--older-than");
}

TEST_F(CliOutbox, an_event_is_shown_with_its_payload_and_no_control_characters) {
  leave_events();
  const auto shown = outbox({"show", std::string(kId) + "1"});
  EXPECT_EQ(shown.status.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, R"({"a":"\u001b[31m"})")) << shown.out;
  EXPECT_TRUE(has(shown.out, "error        NO_ROUTE")) << shown.out;
  refuses(on({"show", std::string(kId) + "9"}), 2, "bad_request", "no event");
}

TEST_F(CliOutbox, nothing_is_changed_without_a_filter_and_without_a_yes) {
  leave_events();
  refuses(on({"retry"}), 2, "bad_request", "--all");
  refuses(on({"discard", "--all"}), 2, "bad_request",
          "2 events would be discarded: add --yes to do it");
  const auto dry = outbox({"discard", "--all", "--dry-run"});
  EXPECT_EQ(dry.status.code, 0);
  EXPECT_TRUE(has(dry.out, "2 events would be discarded\n")) << dry.out;
  EXPECT_TRUE(has(dry.out, "NO_ROUTE")) << dry.out;
  EXPECT_EQ(outbox({"status"}).status.code, 1);
}

TEST_F(CliOutbox, what_was_said_yes_to_is_done) {
  leave_events();
  EXPECT_EQ(outbox({"retry", "--error", "no_route", "--yes"}).out,
            "1 event will be tried again at once\n");
  EXPECT_EQ(outbox({"status"}).status.code, 0);
  EXPECT_EQ(outbox({"discard", std::string(kId) + "1", "--yes"}).out, "1 event discarded\n");
  EXPECT_EQ(outbox({"discard", "--type", "Nothing", "--yes"}).out, "0 events discarded\n");
}

TEST_F(CliOutbox, clean_removes_what_was_published_long_ago) {
  leave_events();
  run_sql("UPDATE outbox_events SET created_at = 1");
  run_sql("UPDATE outbox_events SET status = 'SENT' WHERE position = 3");
  EXPECT_EQ(outbox({"clean"}).out, "1 event removed\n");
  refuses(on({"clean", "--keep", "7d"}), 2, "bad_request", "1 hour to 6 days");
}

// baton dlq on the same file.
class CliDeadLetters : public CliOutbox {
 protected:
  Finished dlq(Words words) const {
    words.insert(words.begin(), "dlq");
    words.insert(words.end(), {"--database", database()});
    return baton(words);
  }
  void leave_dead_letters() const {
    ASSERT_EQ(baton({"inbox", "install", "--database", database()}).status.code, 0);
    for (const auto* row : {"1', 'DEAD', 'timeout', 0", "2', 'DEAD', 'timeout', NULL",
                            "3', 'RETRY', 'timeout', NULL"}) {
      const std::string id = std::string(kId) + row;
      run_sql(
          "INSERT INTO inbox_events (event_id, status, last_error, raw, consumer, queue, type,"
          " aggregate_type, aggregate_id, exchange, routing_key, payload, headers, version,"
          " message_id, content_type) VALUES ('" +
          id + ", 'billing', 'q', 'T', '', 'a', '', 'k', '{}', '{}', 1, 'm', 't')");
      run_sql("INSERT INTO processed_events (consumer, event_id, outcome) VALUES ('billing', '" +
              id.substr(0, 36) + "', 'dead')");
    }
    run_sql("UPDATE inbox_events SET raw = x'ff00' WHERE raw = 0");
  }
};

TEST_F(CliDeadLetters, are_counted_by_error_and_listed_if_asked_for) {
  leave_dead_letters();
  const auto counted = dlq({"list"});
  EXPECT_TRUE(has(counted.out, "2       billing   DEAD")) << counted.out;
  EXPECT_TRUE(has(counted.out, "timeout")) << counted.out;
  EXPECT_FALSE(has(counted.out, kId)) << counted.out;
  EXPECT_TRUE(has(dlq({"list", "--each"}).out, std::string(kId) + "2  billing   DEAD"));
  EXPECT_EQ(dlq({"list", "--consumer", "nobody"}).out, "no dead letters match\n");
  const auto status = baton({"inbox", "status", "--database", database()});
  EXPECT_EQ(status.status.code, 1);
  EXPECT_EQ(status.out.rfind("stuck: 2 dead letters; 1 event is being retried\n", 0), 0U)
      << status.out;
}

TEST_F(CliDeadLetters, one_that_is_none_is_shown_where_it_is) {
  leave_dead_letters();
  EXPECT_TRUE(has(dlq({"show", std::string(kId) + "1"}).out, "timeout"));
  const std::string retried = std::string(kId) + "3";
  const auto other = dlq({"show", retried});
  EXPECT_EQ(other.status.code, 2);
  EXPECT_TRUE(has(other.err, "is RETRY at billing, see 'baton inbox show " + retried + "'"))
      << other.err;
  const auto unknown = dlq({"show", std::string(kId) + "9"});
  EXPECT_EQ(unknown.status.code, 2);
  EXPECT_TRUE(has(unknown.err, "is in no inbox of sqlite:")) << unknown.err;
}

TEST_F(CliDeadLetters, are_exported_whole_one_a_line) {
  leave_dead_letters();
  const auto lines = dlq({"export"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
  EXPECT_TRUE(has(lines, R"("raw_hex":"ff00"})")) << lines;
  EXPECT_TRUE(has(lines, R"("payload":"{}","raw_hex":null})")) << lines;
}

TEST_F(CliDeadLetters, go_back_to_their_consumer_or_are_given_up) {
  leave_dead_letters();
  EXPECT_EQ(dlq({"redrive"}).status.code, 2) << "which ones?";
  EXPECT_EQ(dlq({"redrive", std::string(kId) + "1", "--rate", "x", "--yes"}).status.code, 2);
  EXPECT_EQ(dlq({"redrive", std::string(kId) + "1", "--rate", "100/s", "--yes"}).out,
            "1 event will be handled again\n");
  EXPECT_EQ(dlq({"discard", "--all", "--yes"}).out, "1 event discarded\n");
  EXPECT_EQ(dlq({"list"}).out, "no dead letters match\n");
  run_sql("UPDATE inbox_events SET status = 'DEAD', created_at = 1 WHERE status = 'DISCARDED'");
  const auto old = dlq({"redrive", "--all", "--yes"});
  EXPECT_EQ(old.out, "0 events will be handled again\n");
  EXPECT_TRUE(has(old.err, "--force")) << old.err;
  EXPECT_EQ(dlq({"redrive", "--all", "--force", "--yes"}).out, "1 event will be handled again\n");
}

}  // namespace
}  // namespace baton::test
