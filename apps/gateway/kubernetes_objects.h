#pragma once

#include <memory>
#include <string_view>

#include "apps/gateway/objects.h"

namespace baton::gateway {

// Custom resources of the namespace of a k8s:// URL. Opening it lists both types once, so that
// missing types and rights are told at the start.
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_kubernetes_objects(std::string_view url);

}  // namespace baton::gateway
