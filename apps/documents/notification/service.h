#pragma once

#include "apps/documents/common/service.h"

namespace baton::documents::notification {

// Validated, rejected, enriched and failed in; a message a channel to the owner of the document.
// GET /notifications, GET and PUT /preferences/{user}.
[[nodiscard]] ServiceSpec make_service(const ServiceContext& context);

}  // namespace baton::documents::notification
