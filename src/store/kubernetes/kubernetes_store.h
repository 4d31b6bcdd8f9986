#pragma once

#include <functional>
#include <memory>
#include <string>

#include "baton/kubernetes_store.h"
#include "core/lock_table.h"
#include "store/kubernetes/cluster.h"

namespace baton::store {

struct KubernetesOptions {
  std::string url;
  kubernetes::Surroundings surroundings = kubernetes::process_surroundings();
  std::function<core::StoreTime()> now;                    // for tests: the observer's clock
  std::function<std::chrono::microseconds()> server_time;  // for tests: instead of the header Date
};

[[nodiscard]] Result<std::unique_ptr<LockStore>> open_kubernetes_store_with(
    const KubernetesOptions& options, Deadline deadline);

}  // namespace baton::store
