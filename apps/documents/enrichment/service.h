#pragma once

#include "apps/documents/common/service.h"

namespace baton::documents::enrichment {

// DocumentValidated in; DocumentEnriched out, DocumentFailed if it gives up.
[[nodiscard]] ServiceSpec make_service(const ServiceContext& context);

}  // namespace baton::documents::enrichment
