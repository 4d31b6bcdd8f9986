#include "documents/stages.h"

namespace baton::bench {
namespace {

constexpr const char* kSent = "SELECT count(*) FROM outbox_events WHERE status = 'SENT'";

}  // namespace

// A valid document is Uploaded, Validated and Enriched: audit records and seals all three, status
// and notification are told of the last two.
const std::vector<Stage>& stages() {
  static const std::vector<Stage> all = {
      {.name = "ingestion", .service = "ingestion", .progress = kSent},
      {.name = "validation", .service = "validation", .progress = kSent},
      {.name = "enrichment", .service = "enrichment", .progress = kSent},
      {.name = "audit",
       .service = "audit",
       .progress = "SELECT coalesce(max(sequence), 0) FROM audit_seal",
       .each = 3},
      {.name = "notification",
       .service = "notification",
       .progress = "SELECT count(*) FROM notification_history",
       .each = 2},
      {.name = "status",
       .service = "ingestion",
       .progress = "SELECT count(*) FROM documents WHERE status = 'ENRICHED'"},
  };
  return all;
}

}  // namespace baton::bench
