#pragma once

#include <memory>
#include <string_view>

#include "apps/gateway/objects.h"

namespace baton::gateway {

// sqlite:PATH, for the services of one machine, or postgres://…. Writes under a guard are fenced: a
// service that was paused and has lost its lock cannot write any more.
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_sql_objects(std::string_view url);

}  // namespace baton::gateway
