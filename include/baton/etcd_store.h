#pragma once

#include <memory>
#include <string_view>

#include "baton/store.h"
#include "baton/store_admin.h"

namespace baton {

// etcd://[user:password@]host:2379[,host:2379…][/prefix], and etcds://… with TLS and the options
// ca=, cert=, key= (PEM files). Speaks to etcd's v3 JSON gateway; keeps everything below the prefix
// ("baton"). A holder that dies is noticed by etcd's own leases, which are longer than the TTL by a
// tenth of it, at least by one second. TTLs are at least 1 s here. See docs/stores/etcd.md.
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LockStore>> open_etcd_store(std::string_view url,
                                                                              Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<StoreAdmin>> open_etcd_admin(std::string_view url,
                                                                               Deadline deadline);

}  // namespace baton
