#pragma once

#include "apps/documents/common/service.h"

namespace baton::documents::validation {

// DocumentUploaded in; DocumentValidated or DocumentRejected out, DocumentFailed if it gives up.
[[nodiscard]] ServiceSpec make_service(const ServiceContext& context);

}  // namespace baton::documents::validation
