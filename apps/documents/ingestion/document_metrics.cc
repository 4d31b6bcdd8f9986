#include "apps/documents/ingestion/document_metrics.h"

#include <algorithm>

namespace baton::documents::ingestion {
namespace {

std::pair<std::string_view, observe::Gauge> by_status(observe::Metrics& metrics,
                                                      std::string_view status) {
  return {status, metrics.gauge("documents_by_status", "Documents in a state.",
                                {{"status", std::string(status)}})};
}

// Adds the rows that the trigger has written to the totals. Replicas may do so at once: a row is
// removed by one of them.
void add_up(const Tx& tx) {
  if (!tx.on_postgres()) return;  // there the trigger adds to the totals itself
  tx.write(
      "WITH changes AS (DELETE FROM ended_changes RETURNING status, change)"
      " INSERT INTO ended_documents (status, documents)"
      " SELECT status, sum(change) FROM changes GROUP BY status ORDER BY status"
      " ON CONFLICT (status) DO UPDATE"
      " SET documents = ended_documents.documents + excluded.documents");
}

}  // namespace

DocumentMetrics::DocumentMetrics(observe::Metrics& metrics)
    : counted_{by_status(metrics, "UPLOADED"), by_status(metrics, "VALIDATED"),
               by_status(metrics, "FAILED")},
      ended_{by_status(metrics, "REJECTED"), by_status(metrics, "ENRICHED")},
      oldest_(metrics.gauge("documents_oldest_unfinished_age_seconds",
                            "Age of the oldest document that is UPLOADED or VALIDATED.")) {}

void DocumentMetrics::show(const Tx& tx) const {
  for (const auto& [status, gauge] : counted_) {
    const auto rows = tx.query(
        "SELECT count(*) FROM (SELECT 1 FROM documents WHERE status = $1 LIMIT $2) AS first",
        {std::string(status), kMostCounted});
    gauge.set(static_cast<double>(rows.front().integer(0)));
  }
  add_up(tx);
  for (const auto& [status, gauge] : ended_) {
    const auto rows =
        tx.query("SELECT documents FROM ended_documents WHERE status = $1", {std::string(status)});
    gauge.set(rows.empty() ? 0 : static_cast<double>(rows.front().integer(0)));
  }
  double oldest = 0;
  for (const char* status : {"UPLOADED", "VALIDATED"}) {
    // Ids begin with the time of the document.
    const auto rows = tx.query(
        "SELECT " + tx.time("created_at") + " FROM documents WHERE status = $1 ORDER BY id LIMIT 1",
        {std::string(status)});
    if (!rows.empty()) oldest = std::max(oldest, age_in_seconds(rows.front().text(0)));
  }
  oldest_.set(oldest);
}

}  // namespace baton::documents::ingestion
