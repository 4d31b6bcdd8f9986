#pragma once

#include "apps/documents/common/service.h"

namespace baton::documents::ingestion {

// POST /documents, GET /documents, GET /documents/{id}; publishes DocumentUploaded, and follows the
// other events to know the state of each document.
[[nodiscard]] ServiceSpec make_service(const ServiceContext& context);

}  // namespace baton::documents::ingestion
