#pragma once

#include <memory>

#include "apps/gateway/objects.h"
#include "baton/locks.h"
#include "baton/metrics.h"
#include "http/server.h"

namespace baton::gateway {

// What both services have: GET /healthz (the process lives), /readyz (its stores answer), /metrics
// and /requests/{name}.
void add_common_routes(http::Router& router, const LockClient& locks,
                       const std::shared_ptr<ObjectStore>& objects, observe::Metrics& metrics);

// Counts answers by route and status.
[[nodiscard]] std::function<void(const http::Served&)> counting(observe::Metrics& metrics,
                                                                const std::string& prefix);

}  // namespace baton::gateway
