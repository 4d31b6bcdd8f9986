#include "core/apply.h"
#include "store/common/findings.h"
#include "store/kubernetes/examine.h"
#include "store/kubernetes/find.h"
#include "store/kubernetes/kubernetes_store.h"
#include "store/kubernetes/object_name.h"

namespace baton::store {
namespace {

using namespace kubernetes;  // NOLINT(google-build-using-namespace): its own parts

constexpr int kVersion = 1;  // of what stands in a Lease; there is no schema to make

class KubernetesAdmin final : public StoreAdmin {
 public:
  explicit KubernetesAdmin(Cluster cluster)
      : cluster_(std::move(cluster)),
        api_(cluster_,
             {.here =
                  [] {
                    return std::chrono::floor<core::StoreTime>(BootClock::now().time_since_epoch());
                  },
              .server = {}}) {}

  Result<StoreStatus> status(Deadline deadline) override {
    StoreStatus status;
    status.kind = "kubernetes";
    status.location = "k8s://" + cluster_.space;
    status.schema_version = kVersion;
    status.schema_expected = kVersion;
    const auto version = api_.server_version(deadline);
    if (!version) return version.error();
    status.details.emplace_back("server", cluster_.address + " (Kubernetes " + *version + ")");
    NameCache nothing_seen;
    std::size_t names = 0;
    std::size_t held = 0;
    std::size_t waiting = 0;
    std::size_t damaged = 0;
    auto visited = visit_locks(api_, nothing_seen, deadline, [&](const CachedName& known) {
      ++names;
      const LockInfo info = core::describe(known.lease.key, known.state, api_.now().here, 0);
      held += info.holders.empty() ? 0 : 1;
      waiting += info.waiting;
      damaged += known.damage.empty() ? 0 : 1;
    });
    if (!visited) return visited.error();
    status.details.emplace_back("names", std::to_string(names));
    status.details.emplace_back("held", std::to_string(held));
    status.details.emplace_back("waiters", std::to_string(waiting));
    if (damaged > 0) status.details.emplace_back("damaged", std::to_string(damaged));
    for (const std::string& warning : cluster_.warnings) {
      status.details.emplace_back("warning", warning);
    }
    return status;
  }

  Result<std::pair<int, int>> migrate(Deadline /*deadline*/) override {
    return std::pair{kVersion, kVersion};
  }

  Result<std::vector<Finding>> examine(Millis ttl, Deadline deadline) override {
    auto findings = kubernetes::examine(api_, cluster_, ttl, deadline);
    if (!findings) return findings;
    NameCache nothing_seen;
    std::vector<std::string> damaged;
    // That listing is forbidden has been reported already.
    (void)visit_locks(api_, nothing_seen, deadline, [&](const CachedName& known) {
      if (known.damage.empty()) return;
      damaged.push_back(known.lease.key.empty() ? known.lease.name : known.lease.key);
    });
    if (auto finding = damaged_finding(damaged)) {
      findings->push_back(std::move(*finding));
      worst_first(*findings);
    }
    return findings;
  }

  Result<void> forget_damaged(const std::string& key, Deadline deadline) override {
    auto lease = api_.get(object_name(key), deadline);
    if (!lease) return lease.error();
    if (!*lease) return nothing_stored(key);
    NameCache nothing_seen;
    const CachedName known = nothing_seen.read(key, std::move(**lease), api_.now());
    if (known.damage.empty()) return not_damaged(key);
    const auto removed = api_.remove(known.lease, deadline);
    if (!removed) return removed.error();
    if (removed->fate != Written::Fate::done) return changed_meanwhile(key);
    return {};
  }

  Result<void> raise_tokens(Token /*floor*/, Deadline /*deadline*/) override {
    return Error{.code = Code::unsupported,
                 .message =
                     "tokens on Kubernetes are made of etcd's revisions: after a restore "
                     "raise those, with etcdutl snapshot restore --bump-revision"};
  }

 private:
  const Cluster cluster_;
  LeaseApi api_;
};

}  // namespace
}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<StoreAdmin>> open_kubernetes_admin(std::string_view url,
                                                          Deadline /*deadline*/) {
  auto cluster = store::kubernetes::find_cluster(url, store::kubernetes::process_surroundings());
  if (!cluster) return cluster.error();
  return std::unique_ptr<StoreAdmin>(std::make_unique<store::KubernetesAdmin>(std::move(*cluster)));
}

}  // namespace baton
