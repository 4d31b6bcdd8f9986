#include "apps/documents/services.h"

#include <algorithm>
#include <array>

#include "apps/documents/audit/service.h"
#include "apps/documents/common/topology.h"
#include "apps/documents/enrichment/service.h"
#include "apps/documents/ingestion/service.h"
#include "apps/documents/notification/service.h"
#include "apps/documents/validation/service.h"

namespace baton::documents {
namespace {

constexpr std::array kServices = {
    KnownService{"ingestion", "Takes documents: POST /documents", 8080, ingestion::make_service,
                 queue::status},
    KnownService{"validation", "Checks documents against the rules", 8081, validation::make_service,
                 queue::uploaded},
    KnownService{"enrichment", "Finds out what documents are", 8082, enrichment::make_service,
                 queue::validated},
    KnownService{"audit", "Keeps all events, sealed: GET /audit", 8083, audit::make_service,
                 queue::audit},
    KnownService{"notification", "Tells owners what became of their documents", 8084,
                 notification::make_service, queue::notification},
};

}  // namespace

std::span<const KnownService> all_services() { return kServices; }

const KnownService* find_service(std::string_view name) {
  const auto found = std::find_if(kServices.begin(), kServices.end(),
                                  [&](const KnownService& one) { return one.name == name; });
  return found == kServices.end() ? nullptr : &*found;
}

}  // namespace baton::documents
