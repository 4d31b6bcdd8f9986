// What the services log: each message at its level with its context, so that people and dashboards
// find it. One platform, with debug lines, and documents that meet every fate.

#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "apps/documents/common/topology.h"
#include "baton/broker.h"
#include "event/message_headers.h"
#include "platform.h"

namespace baton::test {
namespace {

using nlohmann::json;

class DocumentLog : public testing::Test {
 protected:
  // Its documents, by correlation id: all-is-well, broken-rule, flaky, poison.
  static Platform& platform() {
    static const int set = ::setenv("DOCUMENTS_LOG_LEVEL", "debug", 1);
    static Platform started;
    static const bool filled = fill(started);
    (void)set;
    (void)filled;
    return started;
  }

  static std::vector<json> lines(const std::string& service) {
    std::vector<json> all;
    std::istringstream log(platform().log(service + "-1"));
    for (std::string text; std::getline(log, text) && !log.eof();) {
      all.push_back(json::parse(text, nullptr, false));
    }
    return all;
  }

  static bool has_all(const json& line, const json& fields) {
    for (const auto& [name, value] : fields.items()) {
      if (line.value(name, json()) != value) return false;
    }
    return true;
  }

  // The line with this message about the document of this correlation id, and with these fields.
  static json line(const std::string& service, const std::string& message,
                   const std::string& correlation_id, const json& fields = json::object()) {
    json found;
    EXPECT_TRUE(poll_until([&] {
      for (const json& one : lines(service)) {
        if (one.value("message", "") == message &&
            one.value("correlationId", "") == correlation_id && has_all(one, fields)) {
          found = one;
        }
      }
      return !found.is_null();
    })) << service
        << " has no " << message << " of " << correlation_id << fields;
    return found.is_null() ? json::object() : found;
  }

  // At that level, and with all of these fields.
  static void expect(const json& line, const std::string& level,
                     const std::vector<std::string>& fields) {
    EXPECT_EQ(line.value("level", ""), level) << line;
    for (const std::string& field : fields) {
      EXPECT_FALSE(line.value(field, "").empty()) << field << " is missing: " << line;
    }
  }

  static std::string id_of(const std::string& correlation_id) {
    return platform()
        .database("ingestion")
        ->query("SELECT id FROM documents WHERE correlation_id = $1", {correlation_id})
        .value()
        .front()
        .text(0);
  }

  // The event of this type about the document of this correlation id, as it was recorded.
  static Event event(const std::string& type, const std::string& correlation_id) {
    const auto row = platform()
                         .database("audit")
                         ->query(
                             "SELECT event_id, document_id, payload, causation_id FROM audit_log"
                             " WHERE event_type = $1 AND correlation_id = $2",
                             {type, correlation_id})
                         .value()
                         .front();
    return {.id = row.text(0),
            .type = type,
            .aggregate = row.text(1),
            .aggregate_type = "Document",
            .exchange = std::string(documents::kExchange),
            .routing_key = routing_key_of(type),
            .payload = row.text(2),
            .correlation_id = correlation_id,
            .causation_id = row.text(3)};
  }

 private:
  static bool fill(Platform& platform) {
    (void)platform.submit(a_document("Well"), "all-is-well");
    json broken = a_document("Broken");
    broken["content"] = "this is malware";
    (void)platform.submit(broken, "broken-rule");
    (void)platform.submit(a_document("Flaky", "flaky"), "flaky");
    (void)platform.submit(a_document("Poison", "poison"), "poison");
    const auto verdict = platform.verify();
    EXPECT_TRUE(verdict.at("ok")) << verdict.dump(2);
    return true;
  }
};

const std::vector<std::string> kServices = {"ingestion", "validation", "enrichment", "audit",
                                            "notification"};

TEST_F(DocumentLog, each_line_is_a_json_object_with_timestamp_level_logger_message_and_service) {
  for (const std::string& service : kServices) {
    const auto all = lines(service);
    EXPECT_FALSE(all.empty());
    for (const json& one : all) {
      ASSERT_TRUE(one.is_object()) << service;
      for (const char* field : {"@timestamp", "level", "logger_name", "message", "service"}) {
        EXPECT_TRUE(one.contains(field) && one.at(field).is_string()) << field << ": " << one;
      }
      EXPECT_EQ(one.at("service"), service + "-service");
    }
  }
}

TEST_F(DocumentLog, event_received_at_info_with_type_routing_key_ids_and_document) {
  const json found = line("validation", "EVENT_RECEIVED", "all-is-well");
  expect(found, "INFO", {"eventType", "routingKey", "eventId", "correlationId", "documentId"});
  EXPECT_EQ(found.at("eventType"), "DocumentUploaded");
  EXPECT_EQ(found.at("routingKey"), "document.uploaded");
  EXPECT_EQ(found.at("documentId"), id_of("all-is-well"));
}

TEST_F(DocumentLog, event_processing_at_debug_with_type_correlation_and_document) {
  expect(line("enrichment", "EVENT_PROCESSING", "all-is-well"), "DEBUG",
         {"eventType", "correlationId", "documentId"});
}

TEST_F(DocumentLog, event_processed_at_info_with_result_outbox_event_and_correlation) {
  const json found = line("validation", "EVENT_PROCESSED", "all-is-well");
  expect(found, "INFO", {"validationResult", "outboxEventId", "correlationId", "documentId"});
  EXPECT_EQ(found.at("validationResult"), "VALIDATED");
  EXPECT_EQ(found.at("outboxEventId"), event("DocumentValidated", "all-is-well").id);
}

TEST_F(DocumentLog, event_skipped_idempotent_at_info_with_event_and_correlation) {
  const Event twice = event("DocumentUploaded", "all-is-well");
  const auto broker = Broker::open(platform().places().broker()).value();
  const auto publisher = broker->publisher().value();
  const std::vector<Message> messages = {event::to_message({.event = twice})};
  const Deadline by = BootClock::now() + patience;
  ASSERT_TRUE(publisher->publish(messages, by));
  ASSERT_EQ(publisher->confirms(by).value().size(), 1U);
  const json found = line("validation", "EVENT_SKIPPED_IDEMPOTENT", "all-is-well");
  expect(found, "INFO", {"eventId", "correlationId"});
  EXPECT_EQ(found.at("eventId"), twice.id);
}

TEST_F(DocumentLog, outbox_publish_success_at_info_with_event_aggregate_and_correlation) {
  const json found = line("ingestion", "OUTBOX_PUBLISH_SUCCESS", "all-is-well");
  expect(found, "INFO", {"eventId", "aggregateId", "correlationId", "documentId", "eventType"});
  EXPECT_EQ(found.at("aggregateId"), id_of("all-is-well"));
}

TEST_F(DocumentLog, business_validation_failed_at_warn_with_reason_correlation_and_document) {
  const json found = line("validation", "BUSINESS_VALIDATION_FAILED", "broken-rule");
  expect(found, "WARN", {"reason", "correlationId", "documentId", "outboxEventId"});
  EXPECT_EQ(found.at("reason"), "forbidden-word");
  EXPECT_EQ(found.at("validationResult"), "REJECTED");
}

TEST_F(DocumentLog, technical_failure_at_error_with_message_and_correlation) {
  const json found = line("enrichment", "TECHNICAL_FAILURE", "flaky");
  expect(found, "ERROR", {"reason", "correlationId", "documentId", "attempt"});
  EXPECT_NE(found.at("reason").get<std::string>().find("simulated"), std::string::npos);
}

TEST_F(DocumentLog, retries_exhausted_is_event_dead_at_error_with_event_and_correlation) {
  const json found = line("enrichment", "EVENT_DEAD", "poison");
  expect(found, "ERROR", {"eventId", "correlationId", "documentId", "reason", "attempt"});
  EXPECT_EQ(found.at("eventId"), event("DocumentValidated", "poison").id);
}

// Nobody wants the event: its queues have been unbound behind the back of the services.
TEST_F(DocumentLog, outbox_publish_fail_at_error_with_event_aggregate_retries_and_correlation) {
  {
    const auto broker =
        sql::Connection::open("sqlite:" + platform().places().directory + "/broker.db").value();
    ASSERT_TRUE(broker->query("DELETE FROM binding"));
    ASSERT_TRUE(broker->query("UPDATE topology SET version = version + 1"));
  }
  (void)platform().submit(a_document("Unwanted"), "unwanted");
  const json found = line("ingestion", "OUTBOX_PUBLISH_FAIL", "unwanted");
  expect(found, "ERROR", {"eventId", "aggregateId", "retryCount", "correlationId", "documentId"});
  EXPECT_EQ(found.at("aggregateId"), id_of("unwanted"));
}

// Section 8.3: one row a service.

TEST_F(DocumentLog, ingestion_takes_or_makes_a_correlation_id_stores_and_publishes_it) {
  EXPECT_EQ(line("ingestion", "DOCUMENT_SUBMITTED", "all-is-well").at("documentId"),
            id_of("all-is-well"));
  EXPECT_EQ(event("DocumentUploaded", "all-is-well").aggregate, id_of("all-is-well"));
  const std::string id = platform().submit(a_document("Without"));
  const auto made = platform().get("ingestion-1", "/documents/" + id).at("correlationId");
  EXPECT_TRUE(is_event_id(made.get<std::string>()));
  EXPECT_EQ(line("ingestion", "DOCUMENT_SUBMITTED", made).at("documentId"), id);
}

TEST_F(DocumentLog, validation_logs_and_publishes_the_correlation_id_of_its_event) {
  (void)line("validation", "EVENT_RECEIVED", "broken-rule");
  EXPECT_EQ(event("DocumentRejected", "broken-rule").causation_id,
            event("DocumentUploaded", "broken-rule").id);
}

TEST_F(DocumentLog, enrichment_logs_and_publishes_the_correlation_id_of_its_event) {
  (void)line("enrichment", "EVENT_RECEIVED", "all-is-well");
  EXPECT_EQ(event("DocumentEnriched", "all-is-well").causation_id,
            event("DocumentValidated", "all-is-well").id);
}

TEST_F(DocumentLog, audit_logs_and_stores_the_correlation_id_of_its_event) {
  (void)line("audit", "EVENT_PROCESSED", "all-is-well", {{"eventType", "DocumentEnriched"}});
  EXPECT_EQ(event("DocumentEnriched", "all-is-well").correlation_id, "all-is-well");
}

TEST_F(DocumentLog, notification_logs_and_stores_the_correlation_id_of_its_event) {
  const json found =
      line("notification", "EVENT_PROCESSED", "all-is-well", {{"eventType", "DocumentEnriched"}});
  EXPECT_EQ(found.at("channels"), "email");
  const json told =
      platform().get("notification-1", "/notifications?correlationId=all-is-well").at("items");
  EXPECT_EQ(told.size(), 2U);
}

TEST_F(DocumentLog, a_refused_request_and_a_hostile_id_leave_no_line_of_their_own) {
  const int port = platform().port("ingestion-1");
  const auto answer = ask(port, {.body = "{",
                                 .headers = {"Content-Type: application/json",
                                             "X-Correlation-Id: evil\",\"level\":\"ERROR"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  json document = a_document("Title with \"quotes\" and \\ and {\"level\":\"ERROR\"}");
  document["owner"] = "evil\",\"level\":\"ERROR";
  (void)platform().submit(document, "quotes\",\"level\":\"ERROR");
  const json found = line("ingestion", "DOCUMENT_SUBMITTED", "quotes\",\"level\":\"ERROR");
  EXPECT_EQ(found.at("level"), "INFO");
}

}  // namespace
}  // namespace baton::test
