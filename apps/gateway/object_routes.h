#pragma once

#include <memory>

#include "apps/gateway/objects.h"
#include "http/router.h"

namespace baton::gateway {

// GET /requests, /requests/NAME, /executions and /executions/NAME, of both services.
void add_object_routes(http::Router& router, const std::shared_ptr<ObjectStore>& objects);

}  // namespace baton::gateway
