#pragma once

#include <memory>
#include <string_view>

#include "baton/store.h"
#include "baton/store_admin.h"

namespace baton {

// k8s://[namespace][?context=…&kubeconfig=…]: one Lease of coordination.k8s.io/v1 a name. Inside a
// cluster as the pod's service account, outside as a kubeconfig says. One name a request: sets and
// hierarchies are `unsupported`. See docs/stores/kubernetes.md.
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LockStore>> open_kubernetes_store(
    std::string_view url, Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<StoreAdmin>> open_kubernetes_admin(
    std::string_view url, Deadline deadline);

}  // namespace baton
