#include "observe/event_logging.h"
#include "json/json.h"

#include <sys/mman.h>
#include <unistd.h>

#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace baton::observe {
namespace {

using Json = nlohmann::json;
using Kind = ConsumerNote::Kind;

class EventLoggingTest : public ::testing::Test {
 protected:
  EventLoggingTest()
      : file_(memfd_create("log", MFD_CLOEXEC)),
        log_({.service = "validation-service", .level = LogLevel::debug, .file = file_}) {}
  ~EventLoggingTest() override { close(file_); }

  [[nodiscard]] std::vector<Json> lines() const {
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    std::vector<Json> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  const int file_;
  Log log_;
  const Event event_{.id = "01990a3e-0000-7000-8000-000000000001",
                     .type = "DocumentUploaded",
                     .aggregate = "doc-1",
                     .routing_key = "document.uploaded",
                     .correlation_id = "c-4711",
                     .traceparent = ""};
};

void expect_context(const Json& line, const std::string& aggregate_key) {
  EXPECT_EQ(line["eventId"], "01990a3e-0000-7000-8000-000000000001") << line;
  EXPECT_EQ(line["eventType"], "DocumentUploaded") << line;
  EXPECT_EQ(line["routingKey"], "document.uploaded") << line;
  EXPECT_EQ(line["correlationId"], "c-4711") << line;
  EXPECT_EQ(line[aggregate_key], "doc-1") << line;
}

TEST_F(EventLoggingTest, every_note_about_an_event_is_a_line_with_its_context) {
  const ConsumerLog events(log_.named("events"), "documentId");
  events.write({.kind = Kind::received, .message = "EVENT_RECEIVED", .event = &event_});
  events.write(
      {.kind = Kind::processed, .message = "EVENT_PROCESSED", .event = &event_, .attempt = 2});
  events.write({.kind = Kind::rejected,
                .message = "BUSINESS_VALIDATION_FAILED",
                .event = &event_,
                .attempt = 1,
                .reason = "too large"});
  events.write({.kind = Kind::failed,
                .message = "TECHNICAL_FAILURE",
                .event = &event_,
                .attempt = 1,
                .reason = "postgres://app:secret@db/x is away"});
  const auto lines = this->lines();
  ASSERT_EQ(lines.size(), 4U);
  for (const Json& line : lines) expect_context(line, "documentId");
  EXPECT_EQ(lines[0]["message"], "EVENT_RECEIVED");
  EXPECT_EQ(lines[0]["level"], "INFO");
  EXPECT_EQ(lines[0].count("attempt"), 0U);
  EXPECT_EQ(lines[1]["level"], "INFO");
  EXPECT_EQ(lines[1]["attempt"], "2");
  EXPECT_EQ(lines[2]["level"], "WARN");
  EXPECT_EQ(lines[2]["reason"], "too large");
  EXPECT_EQ(lines[3]["level"], "ERROR");
  EXPECT_EQ(lines[3]["reason"], "postgres://app:***@db/x is away");
}

TEST_F(EventLoggingTest, what_is_told_without_an_event_has_no_context) {
  const ConsumerLog events(log_.named("events"));
  events.write({.kind = Kind::paused, .message = "CONSUMER_PAUSED", .reason = "no connection"});
  events.write({.kind = Kind::counted, .message = "INBOX_COUNTED", .counts = {.dead = 3}});
  const auto lines = this->lines();
  ASSERT_EQ(lines.size(), 1U);  // a count is for metrics
  EXPECT_EQ(lines[0]["message"], "CONSUMER_PAUSED");
  EXPECT_EQ(lines[0]["level"], "WARN");
  EXPECT_EQ(lines[0].count("eventId"), 0U);
}

TEST_F(EventLoggingTest, what_a_handler_logs_carries_the_context_of_its_event) {
  const Logger log = log_.named("handler");
  const auto handler = in_event_context([&](Handling&) {
    log.info("VALIDATED", {{"validationResult", "ok"}});
    return done();
  });
  Handling handling({.event = &event_});
  EXPECT_EQ(handler(handling).how(), Handled::How::done);
  log.info("AFTER");
  const auto lines = this->lines();
  ASSERT_EQ(lines.size(), 2U);
  expect_context(lines[0], "aggregateId");
  EXPECT_EQ(lines[0]["validationResult"], "ok");
  EXPECT_EQ(lines[1].count("correlationId"), 0U);
}

TEST_F(EventLoggingTest, the_lines_of_a_relay_name_event_aggregate_and_request) {
  const RelayLog events(log_.named("relay"));
  RelayEvent event{.kind = RelayEvent::Kind::published,
                   .event_id = event_.id,
                   .type = event_.type,
                   .aggregate = event_.aggregate,
                   .routing_key = event_.routing_key,
                   .correlation_id = event_.correlation_id};
  events.write(event);
  event.kind = RelayEvent::Kind::returned;
  event.attempts = 3;
  event.why = "no queue wants it";
  events.write(event);
  event.kind = RelayEvent::Kind::failed;
  events.write(event);
  events.write({.kind = RelayEvent::Kind::lane_taken, .lane = 4});
  events.write(Error{.code = Code::unavailable, .message = "the broker is away"});
  const auto lines = this->lines();
  ASSERT_EQ(lines.size(), 5U);
  for (int i = 0; i < 3; ++i) expect_context(lines[i], "aggregateId");
  EXPECT_EQ(lines[0]["message"], "OUTBOX_PUBLISH_SUCCESS");
  EXPECT_EQ(lines[0]["level"], "INFO");
  EXPECT_EQ(lines[1]["message"], "OUTBOX_PUBLISH_FAIL");
  EXPECT_EQ(lines[1]["level"], "ERROR");
  EXPECT_EQ(lines[1]["retryCount"], "3");
  EXPECT_EQ(lines[1]["status"], "PENDING");
  EXPECT_EQ(lines[2]["status"], "FAILED");
  EXPECT_EQ(lines[3]["lane"], "4");
  EXPECT_EQ(lines[4]["reason"], "the broker is away");
}

}  // namespace
}  // namespace baton::observe
