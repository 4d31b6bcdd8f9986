#include "store/kubernetes/find.h"

#include <algorithm>
#include <map>

#include "core/apply.h"
#include "store/kubernetes/object_name.h"

namespace baton::store::kubernetes {

Result<void> visit_locks(LeaseApi& api, NameCache& cache, Deadline deadline,
                         const std::function<void(const CachedName&)>& visit) {
  std::string from;
  do {
    auto list = api.list(from, deadline);
    if (!list) return list.error();
    from = list->next;
    for (LeaseObject& lease : list->leases) {
      const std::string key = lease.key;
      CachedName known = cache.read(key, std::move(lease), api.now());
      if (object_name(key) != known.lease.name) {
        known.damage = "a Lease that does not bear the name of its key";
      }
      visit(known);
    }
  } while (!from.empty());
  return {};
}

Result<Page<LockInfo>> find_locks(LeaseApi& api, NameCache& cache, const Query& query,
                                  Deadline deadline) {
  const std::string prefix = core::key_prefix(query);
  const std::size_t limit = std::max<std::size_t>(query.limit, 1);
  std::map<std::string, LockInfo> found;  // the first limit + 1
  auto visited = visit_locks(api, cache, deadline, [&](const CachedName& known) {
    const std::string& key = known.lease.key;
    if (key <= query.after || !key.starts_with(prefix)) return;
    LockInfo info = core::describe(key, known.state, api.now().here, ~std::size_t{0});
    info.damage = known.damage;
    if (!core::matches(query, info)) return;
    if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
    found.emplace(key, std::move(info));
    if (found.size() > limit + 1) found.erase(std::prev(found.end()));
  });
  if (!visited) return visited.error();
  Page<LockInfo> page;
  for (auto& [key, info] : found) {
    if (page.items.size() == limit) {
      page.next = page.items.back().key;
      break;
    }
    page.items.push_back(std::move(info));
  }
  return page;
}

Result<std::size_t> sweep_locks(LeaseApi& api, NameCache& cache, Deadline deadline) {
  std::vector<LeaseObject> dead;
  auto visited = visit_locks(api, cache, deadline, [&](const CachedName& known) {
    if (known.damage.empty() && core::forgettable(known.state, api.now().here)) {
      dead.push_back(known.lease);
    }
  });
  if (!visited) return visited.error();
  std::size_t swept = 0;
  for (const LeaseObject& lease : dead) {
    const auto removed = api.remove(lease, deadline);
    if (!removed) return removed.error();
    if (removed->fate == Written::Fate::done) ++swept;
  }
  return swept;
}

}  // namespace baton::store::kubernetes
