// What `documents verify` finds when somebody has changed one thing in one of the five databases,
// or among the messages that were sent. The same cases run on files and on servers.

#include <gtest/gtest.h>

#include <filesystem>

#include "platform.h"

namespace baton::test {
namespace {

using nlohmann::json;

struct Tamper {
  const char* service;
  const char* on_files;
  const char* on_servers;  // null: the same
  const char* found;       // what verify must say
};

#define ENRICHED "(SELECT id FROM documents WHERE status = 'ENRICHED' LIMIT 1)"

const Tamper kTampers[] = {
    // a document
    {"ingestion", "DELETE FROM documents WHERE id = " ENRICHED, nullptr, "never submitted"},
    {"ingestion", "UPDATE documents SET status = 'REJECTED' WHERE id = " ENRICHED, nullptr,
     "but should be ENRICHED"},
    {"ingestion", "UPDATE documents SET status = 'ENRICHED' WHERE status = 'FAILED'", nullptr,
     "but should be FAILED"},
    {"ingestion", "UPDATE documents SET content = 'forged' WHERE id = " ENRICHED, nullptr,
     "does not say what the row"},
    {"ingestion", "UPDATE documents SET owner = 'eve' WHERE id = " ENRICHED, nullptr,
     "eve was not told"},
    // what a stage knows
    {"validation", "DELETE FROM validations WHERE result = 'REJECTED'", nullptr,
     "has 1 DocumentRejected, and should have none"},
    {"validation", "UPDATE validations SET result = 'VALIDATED'", nullptr, "DocumentRejected"},
    {"validation", "UPDATE validations SET reasons = '[]' WHERE result = 'REJECTED'", nullptr,
     "does not say what the row"},
    {"enrichment", "DELETE FROM enrichments", nullptr,
     "has 1 DocumentEnriched, and should have none"},
    {"enrichment", "UPDATE enrichments SET checksum = 'sha256:0'", nullptr,
     "does not say what the row"},
    {"enrichment", "DELETE FROM inbox_events WHERE status = 'DEAD'", nullptr,
     "but not in its inbox"},
    {"enrichment", "UPDATE inbox_events SET status = 'RETRY' WHERE status = 'DEAD'", nullptr,
     "again"},
    // an outbox
    {"ingestion", "DELETE FROM outbox_events", nullptr, "which no service has emitted"},
    {"validation", "DELETE FROM outbox_events WHERE type = 'DocumentRejected'", nullptr,
     "which no service has emitted"},
    {"enrichment", "DELETE FROM outbox_events WHERE type = 'DocumentFailed'", nullptr,
     "which no service has emitted"},
    {"enrichment", "UPDATE outbox_events SET payload = '{}'", nullptr, "not recorded as it was"},
    {"validation", "UPDATE outbox_events SET status = 'PENDING'", nullptr, "was not published"},
    {"validation", "UPDATE outbox_events SET status = 'FAILED'", nullptr, "is FAILED"},
    // a ledger
    {"notification", "DELETE FROM processed_events", nullptr, "has not handled"},
    {"ingestion", "UPDATE processed_events SET outcome = 'retrying'", nullptr,
     "but not in its inbox"},
    // the audit log, by somebody with all rights
    {"audit", "DROP TRIGGER audit_log_no_update; UPDATE audit_log SET payload = '{}' WHERE id = 1",
     "ALTER TABLE audit_log DISABLE TRIGGER USER; UPDATE audit_log SET payload = '{}' WHERE id = 1",
     "was changed"},
    {"audit", "DROP TRIGGER audit_log_no_delete; DELETE FROM audit_log WHERE id = 2",
     "ALTER TABLE audit_log DISABLE TRIGGER USER; DELETE FROM audit_log WHERE id = 2",
     "was removed"},
    {"audit", "DROP TRIGGER audit_seal_no_delete; DELETE FROM audit_seal WHERE sequence = 2",
     "ALTER TABLE audit_seal DISABLE TRIGGER USER; DELETE FROM audit_seal WHERE sequence = 2",
     "are missing"},
    {"audit",
     "CREATE TABLE doubled AS SELECT * FROM audit_log; DROP TABLE audit_log;"
     "ALTER TABLE doubled RENAME TO audit_log;"
     "INSERT INTO audit_log SELECT 1000 + id, event_id, event_type, routing_key, document_id,"
     " correlation_id, causation_id, payload, occurred_at, recorded_at FROM audit_log WHERE id = 1",
     "ALTER TABLE audit_log DROP CONSTRAINT audit_log_event_id_key;"
     "INSERT INTO audit_log (event_id, event_type, routing_key, document_id, payload, occurred_at,"
     " recorded_at) SELECT event_id, event_type, routing_key, document_id, payload, occurred_at,"
     " recorded_at FROM audit_log WHERE id = 1",
     "was recorded twice"},
    {"audit",
     "INSERT INTO audit_log (event_id, event_type, routing_key, document_id, payload, occurred_at,"
     " recorded_at) SELECT '01890000-0000-7000-8000-000000000001', event_type, routing_key,"
     " document_id, payload, occurred_at, recorded_at FROM audit_log WHERE id = 1",
     nullptr, "which no service has emitted"},
    // notifications
    {"notification", "DELETE FROM notification_history WHERE channel = 'sms'", nullptr,
     "was not told"},
    {"notification",
     "INSERT INTO notification_history (event_id, channel, user_id, event_type, document_id,"
     " idempotency_key, subject, sent_at) SELECT event_id, 'sms', user_id, event_type, document_id,"
     " 'extra', subject, sent_at FROM notification_history WHERE channel = 'push' LIMIT 1",
     nullptr, "should not have been"},
    {"notification", "UPDATE notification_history SET user_id = 'eve' WHERE channel = 'sms'",
     nullptr, "should not have been"},
    {"notification",
     "UPDATE notification_history SET document_id = 'another' WHERE channel = 'sms'", nullptr,
     "for another document"},
};

// A database as it was, to be put back.
class Saved {
 public:
  Saved(const Platform& platform, const std::string& service)
      : file_(platform.places().directory + "/" + service + ".db"),
        server_(platform.places().postgres),
        name_(platform.places().prefix + service) {
    if (server_.empty()) {
      std::filesystem::copy_file(file_, file_ + ".saved");
    } else {
      Session(server_).sql("CREATE DATABASE " + name_ + "_saved TEMPLATE " + name_);
    }
  }
  ~Saved() {
    if (server_.empty()) {
      for (const char* rest : {"-wal", "-shm"}) std::filesystem::remove(file_ + rest);
      std::filesystem::rename(file_ + ".saved", file_);
      return;
    }
    Session session(server_);
    session.sql("DROP DATABASE " + name_ + " WITH (FORCE)");
    session.sql("ALTER DATABASE " + name_ + "_saved RENAME TO " + name_);
  }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

 private:
  const std::string file_, server_, name_;
};

// Everything that there is: a document of each final state, and one that was tried again.
void fill(Platform& platform) {
  (void)platform.submit(a_document("Good"));
  (void)platform.submit(a_document("Flaky", "flaky"));
  (void)platform.submit(a_document("Poison", "poison"));
  json bad = a_document("Bad");
  bad["content"] = "this is malware";
  (void)platform.submit(bad);
  const json verdict = platform.verify();
  ASSERT_TRUE(verdict.at("ok")) << verdict.dump(2);
  ASSERT_TRUE(platform.stop());
}

TEST(Tamper, verify_finds_each_change_in_each_database) {
  Platform platform;
  fill(platform);
  for (const Tamper& tamper : kTampers) {
    const bool other = !platform.places().postgres.empty() && tamper.on_servers != nullptr;
    const char* sql = other ? tamper.on_servers : tamper.on_files;
    SCOPED_TRACE(std::string(tamper.service) + ": " + sql);
    // All sessions must be gone before the database is copied.
    const Saved saved(platform, tamper.service);
    const auto done = platform.database(tamper.service)->script(sql);
    ASSERT_TRUE(done) << done.error().message;
    const json verdict = platform.verify("0s");
    EXPECT_FALSE(verdict.at("ok"));
    EXPECT_NE(verdict.dump().find(tamper.found), std::string::npos) << verdict.dump(2);
  }
  const json verdict = platform.verify("0s");
  EXPECT_TRUE(verdict.at("ok")) << "what was changed was not put back: " << verdict.dump(2);
}

TEST(Tamper, verify_finds_messages_that_were_lost_or_sent_again) {
  Platform platform;
  fill(platform);
  const std::filesystem::path spool = platform.places().spool();
  const auto message = std::filesystem::directory_iterator(spool / "sms")->path();
  std::filesystem::copy_file(message, spool / "sms" / "again.json");
  EXPECT_NE(platform.verify("0s").dump().find("was sent twice"), std::string::npos);
  std::filesystem::remove(spool / "sms" / "again.json");
  EXPECT_TRUE(platform.verify("0s").at("ok"));
  std::filesystem::remove(message);
  EXPECT_NE(platform.verify("0s").dump().find("but was not sent"), std::string::npos);
}

}  // namespace
}  // namespace baton::test
