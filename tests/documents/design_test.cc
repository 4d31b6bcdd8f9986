// What was asked of the platform's reliability and of several instances of a service, row by row:
// docs/requirements.md says which test is about which row. The same cases run on files and on
// servers.

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "apps/documents/common/topology.h"
#include "baton/broker.h"
#include "event/message_headers.h"
#include "platform.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

Deadline soon() { return BootClock::now() + 30s; }

// A queue of the test's own, which gets what matches the patterns, and a way to publish.
class Spy {
 public:
  Spy(const Platform& platform, const std::vector<std::string>& patterns)
      : broker_(Broker::open(platform.places().broker()).value()) {
    Topology topology = documents::documents_topology();
    topology.queues.push_back({.name = kQueue});
    for (const std::string& pattern : patterns) {
      topology.bindings.push_back(
          {.exchange = std::string(documents::kExchange), .pattern = pattern, .queue = kQueue});
    }
    broker_->declare(topology, soon()).value();
    subscription_ = broker_->subscribe(kQueue, {}, soon()).value();
  }

  // What has come in all, after nothing has come for `quiet`, if there are `enough` of them.
  const std::vector<Message>& messages(std::size_t enough, Millis quiet = Millis(500)) {
    poll_until([&] {
      auto deliveries = subscription_->take(100, BootClock::now() + quiet).value();
      std::vector<Settlement> settlements;
      for (Delivery& delivery : deliveries) {
        settlements.push_back({.tag = delivery.tag});
        messages_.push_back(std::move(delivery.message));
      }
      if (!settlements.empty()) subscription_->settle(settlements, soon()).value();
      return settlements.empty() && messages_.size() >= enough;
    });
    return messages_;
  }

  void publish(const Message& message) {
    const auto publisher = broker_->publisher().value();
    publisher->publish(std::span(&message, 1), soon()).value();
    const auto confirms = publisher->confirms(soon()).value();
    ASSERT_EQ(confirms.size(), 1U);
    EXPECT_EQ(confirms[0].outcome, PublishOutcome::taken) << confirms[0].why;
  }

 private:
  static constexpr const char* kQueue = "test.spy.q";
  std::shared_ptr<Broker> broker_;
  std::unique_ptr<Subscription> subscription_;
  std::vector<Message> messages_;
};

// The events of which an instance has logged `message`, in order.
std::vector<std::string> logged(const Platform& platform, const std::string& instance,
                                const std::string& message) {
  std::vector<std::string> ids;
  std::istringstream lines(platform.log(instance));
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text, nullptr, false);
    if (line.is_object() && line.value("message", "") == message) {
      ids.push_back(line.value("eventId", ""));
    }
  }
  return ids;
}

std::int64_t number(sql::Connection& database, const std::string& sql) {
  return database.query(sql).value().front().integer(0);
}

TEST(Design, three_validation_instances_publish_each_event_once_and_share_the_load) {
  Platform platform("validation=3");
  Spy spy(platform, {"document.validated", "document.rejected"});
  const std::vector<std::string> instances = {"validation-1", "validation-2", "validation-3"};
  // In a file one instance has the outbox at a time; on PostgreSQL it is divided.
  const auto shared = [&] {
    return std::all_of(instances.begin(), instances.end(), [&](const std::string& instance) {
      return !logged(platform, instance, "EVENT_PROCESSED").empty() &&
             (!on_servers() || !logged(platform, instance, "OUTBOX_PUBLISH_SUCCESS").empty());
    });
  };
  std::size_t submitted = 0;
  EXPECT_TRUE(poll_until([&] {
    for (int i = 0; i < 20; ++i, ++submitted) (void)platform.submit(a_document());
    return submitted >= 60 && shared();
  })) << "an instance has no share";
  EXPECT_TRUE(platform.verify().at("ok"));

  std::multiset<std::string> published;
  for (const Message& message : spy.messages(submitted)) published.insert(message.id);
  EXPECT_EQ(published.size(), submitted);
  EXPECT_EQ(std::set<std::string>(published.begin(), published.end()).size(), submitted)
      << "an event came to the queue twice";
  std::multiset<std::string> handled;
  for (const std::string& instance : instances) {
    for (const std::string& id : logged(platform, instance, "EVENT_PROCESSED")) handled.insert(id);
  }
  EXPECT_EQ(handled.size(), submitted);
  EXPECT_EQ(std::set<std::string>(handled.begin(), handled.end()).size(), submitted)
      << "an event was handled by two instances";
}

// What became of a row of inbox_events, each time that it was written; times are milliseconds.
void keep_history(sql::Connection& database) {
  if (database.kind() == sql::Kind::sqlite) {
    database
        .script(
            "CREATE TABLE history (number INTEGER PRIMARY KEY, status, retry_count, due, at);"
            "CREATE TRIGGER history_insert AFTER INSERT ON inbox_events BEGIN"
            "  INSERT INTO history (status, retry_count, due, at) VALUES (NEW.status,"
            "  NEW.retry_count, NEW.next_retry_at,"
            "  CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;"
            "CREATE TRIGGER history_update AFTER UPDATE ON inbox_events BEGIN"
            "  INSERT INTO history (status, retry_count, due, at) VALUES (NEW.status,"
            "  NEW.retry_count, NEW.next_retry_at,"
            "  CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END;")
        .value();
    return;
  }
  database
      .script(
          "CREATE TABLE history (number serial, status text, retry_count int, due bigint,"
          "  at bigint);"
          "CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
          "  INSERT INTO history (status, retry_count, due, at) VALUES (NEW.status,"
          "  NEW.retry_count, extract(epoch FROM NEW.next_retry_at) * 1000,"
          "  extract(epoch FROM clock_timestamp()) * 1000);"
          "  RETURN NULL; END $$;"
          "CREATE TRIGGER history AFTER INSERT OR UPDATE ON inbox_events FOR EACH ROW"
          "  EXECUTE FUNCTION keep_history();")
      .value();
}

TEST(Design, retries_honour_next_retry_at_and_the_fifth_ends_as_a_dead_letter) {
  PlatformOptions options;
  options.retry_delays = "300ms,600ms";
  Platform platform(options);
  const auto enrichment = platform.database("enrichment");
  keep_history(*enrichment);
  const std::string id = platform.submit(a_document("Poison", "poison"));
  ASSERT_TRUE(platform.reaches(id, "FAILED"));

  struct Entry {
    std::string status;
    std::int64_t retries = 0, due = 0, at = 0;
  };
  Entry before;
  int retries = 0;
  const auto history =
      enrichment->query("SELECT status, retry_count, due, at FROM history ORDER BY number").value();
  for (const auto& row : history) {
    const Entry now{row.text(0), row.integer(1), row.null(2) ? 0 : row.integer(2), row.integer(3)};
    if (now.retries > before.retries) {
      EXPECT_GE(now.at, before.due) << "retry " << now.retries << " did not wait";
      ++retries;
    } else if (now.status == "RETRY") {
      EXPECT_GT(now.due, now.at - 1'000);
      EXPECT_LE(now.due - now.at, retries == 0 ? 300 : 600);
    }
    before = now;
  }
  EXPECT_EQ(retries, 5);
  EXPECT_EQ(before.status, "DEAD");
  const auto dead = enrichment->query("SELECT status, retry_count, last_error FROM inbox_events");
  ASSERT_EQ(dead.value().size(), 1U);
  EXPECT_EQ(dead.value().front().text(0), "DEAD");
  EXPECT_EQ(dead.value().front().integer(1), 5);
  EXPECT_NE(dead.value().front().text(2).find("cannot be processed"), std::string::npos);
  // The first attempt and four retries failed; the fifth ended it. It is logged after the commit.
  EXPECT_TRUE(
      poll_until([&] { return logged(platform, "enrichment-1", "EVENT_DEAD").size() == 1; }));
  EXPECT_EQ(logged(platform, "enrichment-1", "TECHNICAL_FAILURE").size(), 5U);
}

// Nothing that succeeds comes in between, which would show that it is not an outage.
TEST(Design, poison_ends_as_dead_letters_although_there_is_nothing_else) {
  Platform platform;
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(platform.submit(a_document("Poison", "poison")));
  for (const std::string& id : ids) EXPECT_TRUE(platform.reaches(id, "FAILED")) << id;
  const json verdict = platform.verify();
  EXPECT_TRUE(verdict.at("ok")) << verdict.dump(2);
  EXPECT_EQ(verdict.at("deadLetters").size(), ids.size());
}

TEST(Design, an_event_that_comes_again_is_skipped_and_nobody_is_notified_twice) {
  Platform platform;
  Spy spy(platform, {"document.#"});
  (void)platform.submit(a_document());
  const json before = platform.verify();
  ASSERT_TRUE(before.at("ok")) << before.dump(2);
  const std::vector<Message> messages = spy.messages(3);
  ASSERT_EQ(messages.size(), 3U);
  for (const Message& message : messages) spy.publish(message);
  // Each in each queue that it is in.
  for (const auto& [instance, skipped] : std::map<std::string, std::size_t>{{"validation-1", 1},
                                                                            {"enrichment-1", 1},
                                                                            {"audit-1", 3},
                                                                            {"notification-1", 2},
                                                                            {"ingestion-1", 2}}) {
    EXPECT_TRUE(poll_until([&, at = instance, count = skipped] {
      return logged(platform, at, "EVENT_SKIPPED_IDEMPOTENT").size() == count;
    })) << instance;
  }
  const json after = platform.verify();
  EXPECT_TRUE(after.at("ok")) << after.dump(2);
  EXPECT_EQ(after.at("notifications"), before.at("notifications"));
  EXPECT_EQ(after.at("events"), before.at("events"));
}

TEST(Design, one_event_reaches_every_service_that_is_bound_to_it) {
  Platform platform;
  (void)platform.submit(a_document());
  ASSERT_TRUE(platform.verify().at("ok"));
  const auto validation = platform.database("validation");
  const std::string id =
      validation->query("SELECT event_id FROM outbox_events").value().front().text(0);
  for (const char* service : {"enrichment", "notification", "audit", "ingestion"}) {
    const auto rows =
        platform.database(service)
            ->query("SELECT consumer, outcome FROM processed_events WHERE event_id = $1", {id})
            .value();
    ASSERT_EQ(rows.size(), 1U) << service;
    EXPECT_EQ(rows.front().text(0), service);
    EXPECT_EQ(rows.front().text(1), "done");
  }
}

TEST(Design, audit_records_events_of_types_that_it_has_never_heard_of) {
  Platform platform;
  Spy spy(platform, {});
  spy.publish(event::to_message({.event = {.id = make_event_id(),
                                           .type = "DocumentArchived",
                                           .aggregate = "a-document",
                                           .exchange = std::string(documents::kExchange),
                                           .routing_key = "document.archived",
                                           .payload = R"({"shelf":7})"}}));
  json listed;
  EXPECT_TRUE(poll_until([&] {
    listed = platform.get("audit-1", "/audit?eventType=DocumentArchived");
    return listed.is_object() && !listed.at("items").empty();
  }));
  EXPECT_EQ(listed.at("items")[0].at("payload").at("shelf"), 7);
}

TEST(Design, a_broken_rule_is_an_outcome_and_is_never_tried_again) {
  Platform platform;
  json document = a_document();
  document["content"] = "this is malware";
  const std::string id = platform.submit(document);
  ASSERT_TRUE(platform.reaches(id, "REJECTED"));
  const auto validation = platform.database("validation");
  EXPECT_EQ(number(*validation, "SELECT count(*) FROM inbox_events"), 0);
  EXPECT_EQ(number(*validation, "SELECT count(*) FROM processed_events WHERE outcome = 'rejected'"),
            1);
  EXPECT_TRUE(poll_until(
      [&] { return logged(platform, "validation-1", "BUSINESS_VALIDATION_FAILED").size() == 1; }));
  EXPECT_TRUE(logged(platform, "validation-1", "TECHNICAL_FAILURE").empty());
}

TEST(Service, whose_consumer_cannot_go_on_ends_instead_of_looking_alive) {
  const TempDir directory("service");
  const std::string broker = "embedded:" + (directory / "broker.db").string();
  const std::string queue(documents::queue::audit);
  Broker::open(broker)
      .value()
      ->declare({.queues = {{.name = queue, .single_active = true}}}, soon())
      .value();
  const Finished ended =
      run({.argv = {BATON_DOCUMENTS, "audit", "--listen", "127.0.0.1:0", "--database",
                    "sqlite:" + (directory / "audit.db").string(), "--broker", broker}});
  EXPECT_EQ(ended.status.signal, 0);
  EXPECT_NE(ended.status.code, 0);
  EXPECT_NE(ended.err.find(queue), std::string::npos) << ended.err;
}

TEST(Design, documents_are_taken_while_the_broker_is_away_and_enriched_when_it_is_back) {
  if (!on_servers()) GTEST_SKIP() << "the broker is a file, which is never away";
  Platform platform;
  rabbit().stop();
  const std::string id = platform.submit(a_document());
  const auto ingestion = platform.database("ingestion");
  const auto outbox = "SELECT status, retry_count, sent_at FROM outbox_events";
  const auto waiting = ingestion->query(outbox).value();
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting.front().text(0), "PENDING");
  EXPECT_TRUE(waiting.front().null(2));
  rabbit().start();
  EXPECT_TRUE(platform.reaches(id, "ENRICHED"));
  const json result = platform.verify();
  EXPECT_TRUE(result.at("ok")) << result.dump(2);
  const auto sent = ingestion->query(outbox).value();
  EXPECT_EQ(sent.front().text(0), "SENT");
  EXPECT_EQ(sent.front().integer(1), 0) << "an outage uses no attempt";
  EXPECT_FALSE(sent.front().null(2));
}

}  // namespace
}  // namespace baton::test
