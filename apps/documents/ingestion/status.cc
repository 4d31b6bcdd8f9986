#include "apps/documents/ingestion/status.h"

#include "apps/documents/common/topology.h"

namespace baton::documents::ingestion {

std::optional<Status> proved_by(std::string_view event, std::string_view stage) {
  if (event == type::failed && stage == "validation") return Status{"FAILED", 1};
  if (event == type::validated) return Status{"VALIDATED", 2};
  if (event == type::rejected) return Status{"REJECTED", 2};
  if (event == type::failed && stage == "enrichment") return Status{"FAILED", 3};
  if (event == type::enriched) return Status{"ENRICHED", 4};
  return std::nullopt;
}

}  // namespace baton::documents::ingestion
