#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "apps/documents/common/tx.h"
#include "baton/metrics.h"

namespace baton::documents::ingestion {

// documents_by_status and documents_oldest_unfinished_age_seconds: rows of the database, so all
// replicas show the same. What a look costs does not grow with the documents that there have been:
//
//   UPLOADED, VALIDATED   under way: counted by the index on status, up to kMostCounted
//   FAILED                the same: as many as there are dead letters
//   REJECTED, ENRICHED    grow for ever: a trigger counts them as they come, in the transaction
//                         that ends the document (postgres_tables.sql)
class DocumentMetrics {
 public:
  static constexpr std::int64_t kMostCounted = 100'000;

  explicit DocumentMetrics(observe::Metrics& metrics);
  void show(const Tx& tx) const;

 private:
  std::array<std::pair<std::string_view, observe::Gauge>, 3> counted_;
  std::array<std::pair<std::string_view, observe::Gauge>, 2> ended_;
  observe::Gauge oldest_;
};

}  // namespace baton::documents::ingestion
