#pragma once

#include <functional>
#include <memory>
#include <string>

#include "baton/etcd_store.h"
#include "core/lock_table.h"

namespace baton::store {

struct EtcdOptions {
  std::string url;
  // For tests, instead of CLOCK_BOOTTIME. Leases still run by etcd's clock, so make them long.
  std::function<core::StoreTime()> now;
  std::chrono::seconds least_lease{0};
  bool revoke_at_end = false;  // also if grants are left
  Millis sweep_every{60'000};
};

Result<std::unique_ptr<LockStore>> open_etcd_store(EtcdOptions options, Deadline deadline);

}  // namespace baton::store
