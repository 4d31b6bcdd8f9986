#pragma once

// What a service tells the logs and the metrics about events and requests. The messages and fields
// are a contract with those who search the logs (README.md lists them).

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "baton/consumer.h"
#include "baton/consumer_metrics.h"
#include "baton/metrics.h"
#include "baton/outbox_metrics.h"
#include "baton/relay.h"
#include "http/server.h"
#include "observe/event_logging.h"
#include "observe/log.h"

namespace baton::documents {

// Thread-safe.
class ServiceLog {
 public:
  ServiceLog(observe::Log& log, const std::string& service,
             std::shared_ptr<observe::Metrics> metrics);

  // The handler, with the fields of the event on every line that it logs. What it puts into its own
  // fields is told with the outcome, once the transaction has been committed.
  Handled handle(const Handling& handling,
                 const std::function<Handled(observe::LogFields&)>& handler);
  void tell(const ConsumerNote& note);

  void tell(const RelayEvent& event) const;
  void tell_relay(const Error& error) const { relay_.write(error); }
  void show(const RelayStats& stats) const { relay_metrics_.show(stats); }

  void tell(const Error& error) const;
  void tell(const http::Served& served) const;

 private:
  [[nodiscard]] observe::LogFields take_fields(const std::string& event_id);

  const observe::Logger log_;
  const observe::Logger handler_;
  const observe::ConsumerLog consumer_;
  const observe::RelayLog relay_;
  const std::shared_ptr<observe::Metrics> metrics_;
  const observe::ConsumerMetrics consumer_metrics_;
  const observe::OutboxMetrics relay_metrics_;

  // By event id, from the handler to the note.
  std::mutex mutex_;
  std::map<std::string, observe::LogFields> fields_;
};

}  // namespace baton::documents
