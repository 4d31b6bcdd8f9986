#pragma once

// An event in the logs of all the services that it passes through, found again by correlationId or
// eventId:
//
//   const ConsumerLog events(log.named("billing.events"));
//   options.on_note = [&](const baton::ConsumerNote& note) { events.write(note); };
//   baton::Consumer consumer(broker, database, options, in_event_context(handler));
//
// docs/observing.md has the lines and their fields.

#include <string>
#include <utility>

#include "baton/consumer.h"
#include "baton/event.h"
#include "baton/relay.h"
#include "observe/log.h"

namespace baton::observe {

// The context of an event: eventId, eventType, routingKey, correlationId, and its aggregate under
// `aggregate_key`, as in a service where that is "documentId".
[[nodiscard]] BATON_EXPORT LogFields event_fields(const Event& event,
                                                  const std::string& aggregate_key = "aggregateId");

// Wraps a handler, so that its log lines carry the context of its event.
[[nodiscard]] BATON_EXPORT Consumer::Handler in_event_context(
    Consumer::Handler handler, std::string aggregate_key = "aggregateId");

// EVENT_RECEIVED, EVENT_PROCESSED, EVENT_SKIPPED_IDEMPOTENT, BUSINESS_VALIDATION_FAILED,
// TECHNICAL_FAILURE, EVENT_DEAD, … with the context of the event. Thread-safe; the Log of the
// logger outlives it.
class BATON_EXPORT ConsumerLog {
 public:
  explicit ConsumerLog(Logger log, std::string aggregate_key = "aggregateId")
      : log_(std::move(log)), aggregate_key_(std::move(aggregate_key)) {}

  void write(const ConsumerNote& note) const;

 private:
  Logger log_;
  std::string aggregate_key_;
};

struct RelayLogOptions {
  std::string aggregate_key = "aggregateId";
  LogLevel published = LogLevel::info;  // a line for each event
};

// OUTBOX_PUBLISH_SUCCESS, OUTBOX_PUBLISH_FAIL (status FAILED: for the last time), … for
// RelayOptions::on_event and on_error. Thread-safe; the Log of the logger outlives it.
class BATON_EXPORT RelayLog {
 public:
  explicit RelayLog(Logger log, RelayLogOptions options = {})
      : log_(std::move(log)), options_(std::move(options)) {}

  void write(const RelayEvent& event) const;
  void write(const Error& error) const;

 private:
  Logger log_;
  RelayLogOptions options_;
};

}  // namespace baton::observe
