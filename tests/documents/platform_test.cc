// The whole platform, as its users see it. The same cases run on files and on servers.

#include <gtest/gtest.h>

#include "inbox/operate.h"
#include "platform.h"

namespace baton::test {
namespace {

using nlohmann::json;
using sql::Connection;

// That an operator would change a row: the command must not succeed.
bool refused(Connection& database, const std::string& sql) { return !database.query(sql); }

// Whether ingestion's metrics come to say so.
bool counts(const Platform& platform, const std::string& status, int documents) {
  const std::string line =
      "\ndocuments_by_status{status=\"" + status + "\"} " + std::to_string(documents) + "\n";
  return poll_until([&] {
    const auto answer =
        ask(platform.port("ingestion-1"), {.method = "GET", .path = "/metrics", .headers = {}});
    return answer && answer->body.find(line) != std::string::npos;
  });
}

TEST(platform, every_document_ends_in_its_right_state) {
  Platform platform;
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 50; ++i) {
    json document = a_document("Letter " + std::to_string(i));
    std::string status = "ENRICHED";
    if (i % 10 == 3) {
      document["content"] = "this is malware";
      status = "REJECTED";
    } else if (i % 10 == 5) {
      document["metadata"]["simulate"] = "poison";
      status = "FAILED";
    } else if (i == 7) {
      document["metadata"] = {{"simulate", "poison"}, {"simulateAt", "validation"}};
      status = "FAILED";
    } else if (i % 10 == 8) {
      document["metadata"]["simulate"] = "flaky";
    }
    expected[platform.submit(document)] = status;
  }
  const json result = platform.verify();
  EXPECT_TRUE(result.at("ok")) << result.dump(2);
  EXPECT_EQ(result.at("documents"), json({{"ENRICHED", 39}, {"REJECTED", 5}, {"FAILED", 6}}));
  for (const auto& dead : result.at("deadLetters")) {
    EXPECT_EQ(expected.at(dead.at("documentId")), "FAILED");
  }
  EXPECT_EQ(result.at("deadLetters").size(), 6U);
  for (const auto& [id, status] : expected) EXPECT_TRUE(platform.reaches(id, status)) << id;
  EXPECT_TRUE(counts(platform, "UPLOADED", 0));
  EXPECT_TRUE(counts(platform, "ENRICHED", 39));
  EXPECT_TRUE(counts(platform, "REJECTED", 5));
  EXPECT_TRUE(counts(platform, "FAILED", 6));
  EXPECT_TRUE(platform.stop());
}

TEST(platform, a_dead_letter_fails_its_document_and_a_redrive_enriches_it) {
  Platform platform;
  const std::string id = platform.submit(a_document("Poison", "poison"), "the-saga");
  ASSERT_TRUE(platform.reaches(id, "FAILED"));
  EXPECT_TRUE(platform.verify().at("ok"));
  const json failed = platform.get("audit-1", "/audit?eventType=DocumentFailed");
  ASSERT_EQ(failed.at("items").size(), 1U);
  EXPECT_EQ(failed.at("items")[0].at("payload").at("stage"), "enrichment");
  EXPECT_EQ(failed.at("items")[0].at("correlationId"), "the-saga");

  ASSERT_TRUE(platform.stop());
  platform.start(false);  // what made it fail has been mended
  const auto enrichment = platform.database("enrichment");
  ASSERT_EQ(inbox::change_events(*enrichment, inbox::Action::redrive, {}, INT64_MAX).value(), 1);
  EXPECT_TRUE(platform.reaches(id, "ENRICHED"));
  EXPECT_TRUE(counts(platform, "ENRICHED", 1));
  EXPECT_TRUE(counts(platform, "FAILED", 0));
  const json result = platform.verify();
  EXPECT_TRUE(result.at("ok")) << result.dump(2);
  EXPECT_TRUE(result.at("deadLetters").empty());
}

TEST(platform, a_repeated_request_is_answered_again_and_stored_once) {
  Platform platform;
  const int port = platform.port("ingestion-1");
  const Call call{.body = a_document().dump(),
                  .headers = {"Content-Type: application/json", "Idempotency-Key: key-1"}};
  const auto first = ask(port, call);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 201);
  const auto again = ask(port, call);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, 201);
  EXPECT_EQ(again->body, first->body);
  EXPECT_EQ(again->headers.at("location"), first->headers.at("location"));

  Call other = call;
  other.body = a_document("Another letter").dump();
  EXPECT_EQ(ask(port, other)->status, 422);
  EXPECT_EQ(platform.get("ingestion-1", "/documents").at("items").size(), 1U);
}

TEST(platform, a_key_that_is_at_work_elsewhere_is_a_conflict_and_leaves_nothing) {
  if (!on_servers()) GTEST_SKIP() << "SQLite has one writer at a time: the second request waits";
  Platform platform;
  const auto database = platform.database("ingestion");
  const Call call{.body = a_document().dump(),
                  .headers = {"Content-Type: application/json", "Idempotency-Key: busy"}};
  {
    auto elsewhere = sql::Transaction::begin(*database).value();
    ASSERT_TRUE(elsewhere.query(
        std::string("SELECT pg_advisory_xact_lock(hashtextextended('documents idempotency busy', "
                    "0))")));
    EXPECT_EQ(ask(platform.port("ingestion-1"), call)->status, 409);
  }
  EXPECT_EQ(ask(platform.port("ingestion-1"), call)->status, 201);
}

TEST(platform, one_correlation_id_is_in_the_logs_and_tables_of_all_services) {
  Platform platform;
  const std::string id = platform.submit(a_document(), "trace-me");
  ASSERT_TRUE(platform.verify().at("ok"));
  for (const std::string service :
       {"ingestion", "validation", "enrichment", "audit", "notification"}) {
    bool found = false;
    std::istringstream lines(platform.log(service + "-1"));
    for (std::string text; std::getline(lines, text);) {
      const json line = json::parse(text, nullptr, false);
      ASSERT_TRUE(line.is_object()) << text;
      EXPECT_EQ(line.at("service"), service + "-service");
      found = found ||
              (line.value("correlationId", "") == "trace-me" && line.value("documentId", "") == id);
    }
    EXPECT_TRUE(found) << service;
  }
  const Finished traced = platform.command({"trace", "trace-me", "--json"});
  ASSERT_TRUE(traced.status.success()) << traced.err;
  std::set<std::string> services;
  std::istringstream lines(traced.out);
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    services.insert(line.at("service"));
    EXPECT_EQ(line.at("documentId"), id);
  }
  EXPECT_EQ(services.size(), 5U);
  EXPECT_FALSE(platform.command({"trace", "nobody"}).status.success());
}

TEST(platform, the_audit_log_is_immutable_and_tampering_is_found) {
  Platform platform;
  (void)platform.submit(a_document());
  ASSERT_TRUE(platform.verify().at("ok"));
  ASSERT_TRUE(platform.stop());
  const auto audit = platform.database("audit");
  EXPECT_TRUE(refused(*audit, "UPDATE audit_log SET payload = '{}'"));
  EXPECT_TRUE(refused(*audit, "DELETE FROM audit_log"));
  EXPECT_TRUE(refused(*audit, "DELETE FROM audit_seal"));
  EXPECT_TRUE(refused(*audit, "UPDATE audit_seal SET hash = ''"));
  if (on_servers()) {
    EXPECT_TRUE(refused(*audit, "TRUNCATE audit_log CASCADE"));
    EXPECT_TRUE(refused(*audit, "TRUNCATE audit_seal"));
  } else {
    EXPECT_TRUE(refused(*audit, "REPLACE INTO audit_log SELECT * FROM audit_log"));
    EXPECT_TRUE(refused(*audit, "REPLACE INTO audit_seal SELECT * FROM audit_seal"));
  }
  EXPECT_TRUE(platform.command({"audit", "verify"}).status.success());

  // What only somebody with all rights can do.
  ASSERT_TRUE(audit->script(
      on_servers() ? "ALTER TABLE audit_log DISABLE TRIGGER ALL"
                   : "DROP TRIGGER audit_log_no_update; DROP TRIGGER audit_log_no_delete"));
  ASSERT_TRUE(
      audit->query("UPDATE audit_log SET payload = '{}' WHERE event_type = "
                   "'DocumentValidated'"));
  const Finished changed = platform.command({"audit", "verify"});
  EXPECT_EQ(changed.status.code, 1);
  EXPECT_NE(changed.out.find("was changed"), std::string::npos) << changed.out;
  ASSERT_TRUE(audit->query("DELETE FROM audit_log WHERE event_type = 'DocumentValidated'"));
  EXPECT_NE(platform.command({"audit", "verify"}).out.find("was removed"), std::string::npos);
  EXPECT_FALSE(platform.verify("0s").at("ok"));
}

TEST(platform, verify_finds_what_is_lost_or_doubled) {
  Platform platform;
  const std::string id = platform.submit(a_document());
  ASSERT_TRUE(platform.verify().at("ok"));
  ASSERT_TRUE(platform.stop());
  const auto notification = platform.database("notification");
  ASSERT_TRUE(notification->query("DELETE FROM notification_history WHERE channel = 'email'"));
  EXPECT_FALSE(platform.verify("0s").at("ok"));
  const auto ingestion = platform.database("ingestion");
  ASSERT_TRUE(ingestion->query("UPDATE documents SET status = 'REJECTED' WHERE id = $1", {id}));
  const json result = platform.verify("0s");
  EXPECT_NE(result.dump().find("is REJECTED, but should be ENRICHED"), std::string::npos);
}

TEST(platform, replicas_share_the_work_and_a_killed_one_is_replaced) {
  Platform platform("validation=3,enrichment=2,notification=2");
  for (int i = 0; i < 60; ++i) {
    (void)platform.submit(a_document("Letter " + std::to_string(i)));
    if (i == 20) platform.kill("validation-1");
    if (i == 30) platform.kill("audit-1");
    if (i == 40) platform.kill("ingestion-1");
  }
  const json result = platform.verify();
  EXPECT_TRUE(result.at("ok")) << result.dump(2);
  EXPECT_EQ(result.at("documents"), json({{"ENRICHED", 60}}));
}

TEST(platform, children_die_with_their_parent) {
  Platform platform;
  const pid_t child = platform.pid("validation-1");
  platform.up().kill(SIGKILL);
  EXPECT_TRUE(poll_until([&] { return ::kill(child, 0) != 0; }));
}

}  // namespace
}  // namespace baton::test
