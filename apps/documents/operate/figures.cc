#include "apps/documents/operate/figures.h"

#include <algorithm>

#include "apps/documents/services.h"

namespace baton::documents {
namespace {

constexpr Millis kBrokerWithin{1'000};

std::int64_t count_rows(const Tx& tx, const std::string& what) {
  return tx.query("SELECT count(*) FROM " + what).front().integer(0);
}

bool has_table(const Tx& tx, const std::string& name) {
  return !tx.query(tx.on_postgres()
                       ? "SELECT 1 FROM pg_class WHERE oid = to_regclass($1)"
                       : "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1",
                   {name})
              .empty();
}

}  // namespace

std::int64_t Figures::count(const std::string& status) const {
  const auto found = by_status.find(status);
  return found == by_status.end() ? 0 : found->second;
}

std::int64_t Figures::final() const {
  return count("REJECTED") + count("FAILED") + count("ENRICHED");
}

std::string Figures::line() const {
  std::string text = "documents:";
  for (const char* status : {"UPLOADED", "VALIDATED", "REJECTED", "FAILED", "ENRICHED"}) {
    text += " " + std::to_string(count(status)) + " " + status;
  }
  std::int64_t retrying = 0;
  std::int64_t dead = 0;
  for (const Service& service : services) {
    retrying += service.retrying;
    dead += service.dead;
  }
  return text + "; " + std::to_string(events) + " events, " + std::to_string(sealed) + " sealed; " +
         std::to_string(notifications) + " notifications; " + std::to_string(retrying) +
         " retrying, " + std::to_string(dead) + " dead";
}

FiguresReader::Session& FiguresReader::session_of(std::string_view service) {
  const auto found = sessions_.find(service);
  if (found != sessions_.end()) return found->second;
  Session session{.connection = need(places_.look_into(service))};
  session.has_outbox = has_table(Tx(*session.connection), "outbox_events");
  return sessions_.emplace(service, std::move(session)).first->second;
}

void FiguresReader::read_service(std::string_view service, Figures& figures) {
  const Session& session = session_of(service);
  const Tx tx(*session.connection);
  Figures::Service row{.name = std::string(service)};
  row.retrying = count_rows(tx, "inbox_events WHERE status IN ('RETRY', 'HELD')");
  row.dead = count_rows(tx, "inbox_events WHERE status = 'DEAD'");
  if (session.has_outbox) {
    row.to_publish = count_rows(tx, "outbox_events WHERE status = 'PENDING'");
  }
  if (service == "ingestion") {
    for (const auto& found : tx.query("SELECT status, count(*) FROM documents GROUP BY status")) {
      figures.by_status[found.text(0)] = found.integer(1);
    }
  } else if (service == "audit") {
    figures.events = count_rows(tx, "audit_log");
    figures.sealed = count_rows(tx, "audit_seal");
  } else if (service == "notification") {
    figures.notifications = count_rows(tx, "notification_history");
  }
  figures.services.push_back(std::move(row));
}

void FiguresReader::read_queues(Figures& figures) {
  Topology wanted;
  for (const KnownService& service : all_services()) {
    if (!service.queue.empty()) wanted.queues.push_back({.name = std::string(service.queue)});
  }
  if (!broker_) broker_ = need(Broker::open(places_.broker()));
  const auto queues = broker_->queues(wanted, BootClock::now() + kBrokerWithin);
  if (!queues) {
    figures.broker_trouble = queues.error().message;
    return;
  }
  for (const KnownService& service : all_services()) {
    const auto queue = std::find_if(queues->begin(), queues->end(), [&](const QueueInfo& one) {
      return one.exists && one.name == service.queue;
    });
    const auto row = std::find_if(figures.services.begin(), figures.services.end(),
                                  [&](const auto& one) { return one.name == service.name; });
    if (queue != queues->end() && row != figures.services.end()) {
      row->queued = queue->ready + queue->unsettled;
    }
  }
}

Result<Figures> FiguresReader::read() {
  Figures figures;
  try {
    for (const KnownService& service : all_services()) read_service(service.name, figures);
    read_queues(figures);
  } catch (const SqlError& failed) {
    sessions_.clear();  // the next look begins with new ones
    return failed.error;
  }
  return figures;
}

}  // namespace baton::documents
