#include "store/kubernetes/examine.h"

#include "store/common/findings.h"

namespace baton::store::kubernetes {
namespace {

struct Right {
  const char* verb;
  Severity severity;
  const char* consequence;
};
constexpr Right kRights[] = {
    {"get", Severity::danger, "no lock can be taken: the store cannot even be opened"},
    {"create", Severity::danger, "no free lock can be taken"},
    {"update", Severity::danger, "no lease is renewed: each is lost after its TTL"},
    {"delete", Severity::danger, "no lock is released: each stays taken for its TTL"},
    {"list", Severity::warning,
     "'baton lock find' does not work, and Leases of holders that died are never swept"},
    {"watch", Severity::warning,
     "waiters are not told that it is their turn, and hear of it up to a second later"},
};

Result<bool> examine_rights(LeaseApi& api, const Cluster& cluster, Deadline deadline,
                            Findings& findings) {
  bool may_write = true;
  for (const Right& right : kRights) {
    const auto allowed = api.may(right.verb, deadline);
    if (!allowed) return allowed.error();
    if (*allowed) continue;
    may_write = may_write && right.severity != Severity::danger;
    findings.add(std::string("rbac-") + right.verb, right.severity,
                 "this user may not '" + std::string(right.verb) +
                     "' leases.coordination.k8s.io in namespace '" + cluster.space + "'",
                 right.consequence, "give it the rights of deploy/kubernetes/rbac.yaml");
  }
  return may_write;
}

// A Lease of no name, made and deleted.
bool write_once(LeaseApi& api, Deadline deadline) {
  const std::string key = "BATON:doctor:" + to_string(new_grant_id());
  const auto made = api.create(print_lease(key, "{}", {}, {}, nullptr), deadline);
  if (!made || made->fate != Written::Fate::done) return false;
  const auto removed = api.remove(made->lease, deadline);
  return removed && removed->fate == Written::Fate::done;
}

}  // namespace

Result<std::vector<Finding>> examine(LeaseApi& api, const Cluster& cluster, Millis ttl,
                                     Deadline deadline) {
  Findings findings;
  const auto may_write = examine_rights(api, cluster, deadline, findings);
  if (!may_write) return may_write.error();
  if (!cluster.tls.verify || cluster.address.starts_with("http://")) {
    findings.add("tls-unverified", Severity::danger,
                 "nobody checks that " + cluster.address + " is the API server",
                 "anyone who answers there gets the token, and can say of any lock that it is free",
                 "give the cluster's CA in the kubeconfig instead of insecure-skip-tls-verify");
  }
  if (*may_write) {
    const auto slowest = slowest_of(3, [&] { return write_once(api, deadline); });
    if (slowest) {
      findings.add(slow_finding(*slowest / 2, ttl, cluster.address));
    } else {
      findings.add("not-writable", Severity::danger,
                   "a Lease could not be made in namespace '" + cluster.space + "'",
                   "no lock can be taken",
                   "does the namespace exist? Is there a quota, or an admission webhook?");
    }
  }
  return findings.worst_first();
}

}  // namespace baton::store::kubernetes
