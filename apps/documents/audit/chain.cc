#include "apps/documents/audit/chain.h"

#include "apps/documents/common/work.h"
#include "core/sha256.h"

namespace baton::documents::audit {

Seal seal(const Seal& previous, const AuditRow& row) {
  const std::int64_t sequence = previous.sequence + 1;
  const nlohmann::json covered = {sequence,        previous.hash,      row.id,
                                  row.event_id,    row.event_type,     row.routing_key,
                                  row.document_id, row.correlation_id, row.causation_id,
                                  row.payload,     row.occurred_at,    row.recorded_at};
  return {.sequence = sequence, .hash = core::sha256(dump(covered))};
}

}  // namespace baton::documents::audit
