#include "apps/documents/operate/figures.h"

#include "apps/documents/common/tx.h"
#include "apps/documents/services.h"

namespace baton::documents {
namespace {

std::int64_t count(const Tx& tx, const std::string& what) {
  return tx.query("SELECT count(*) FROM " + what).front().integer(0);
}

}  // namespace

std::string Figures::line() const {
  std::string text = "documents:";
  for (const char* status : {"UPLOADED", "VALIDATED", "REJECTED", "FAILED", "ENRICHED"}) {
    const auto found = by_status.find(status);
    text += " " + std::to_string(found == by_status.end() ? 0 : found->second) + " " + status;
  }
  return text + "; " + std::to_string(events) + " events, " + std::to_string(sealed) + " sealed; " +
         std::to_string(notifications) + " notifications; " + std::to_string(retrying) +
         " retrying, " + std::to_string(dead) + " dead";
}

Result<Figures> read_figures(const Places& places) {
  Figures figures;
  try {
    for (const KnownService& service : all_services()) {
      const auto session = need(places.look_into(service.name));
      const Tx tx(*session);
      if (service.name == "ingestion") {
        for (const auto& row : tx.query("SELECT status, count(*) FROM documents GROUP BY status")) {
          figures.by_status[row.text(0)] = row.integer(1);
        }
      } else if (service.name == "audit") {
        figures.events = count(tx, "audit_log");
        figures.sealed = count(tx, "audit_seal");
      } else if (service.name == "notification") {
        figures.notifications = count(tx, "notification_history");
      }
      figures.retrying += count(tx, "inbox_events WHERE status IN ('RETRY', 'HELD')");
      figures.dead += count(tx, "inbox_events WHERE status = 'DEAD'");
    }
  } catch (const SqlError& failed) {
    return failed.error;
  }
  return figures;
}

}  // namespace baton::documents
