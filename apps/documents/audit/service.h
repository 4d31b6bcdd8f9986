#pragma once

#include "apps/documents/common/service.h"

namespace baton::documents::audit {

// All events in; a row for each, sealed into a hash chain. GET /audit.
[[nodiscard]] ServiceSpec make_service(const ServiceContext& context);

}  // namespace baton::documents::audit
