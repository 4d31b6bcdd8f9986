#pragma once

#include <string>

#include "stores/fleet.h"

namespace baton::bench {

// One new server each, set up as the documentation of the store asks for. SQLite has none: a file.
[[nodiscard]] Deployment sqlite_deployment();
[[nodiscard]] Deployment postgres_deployment(const std::string& scheme);
[[nodiscard]] Deployment redis_deployment();
[[nodiscard]] Deployment etcd_deployment();
[[nodiscard]] Deployment kubernetes_deployment();

}  // namespace baton::bench
