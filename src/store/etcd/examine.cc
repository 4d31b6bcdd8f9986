#include "store/etcd/examine.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

#include "store/common/findings.h"
#include "store/etcd/gateway.h"

namespace baton::store::etcd {
namespace {

constexpr Millis kPatience{2000};  // with one member: for whether it is up, and for its version

class Examiner : private Findings {
 public:
  Examiner(const Settings& settings, Millis ttl, Deadline deadline)
      : settings_(settings), ttl_(ttl), deadline_(deadline), gateway_(settings) {}

  Result<std::vector<Finding>> run() {
    const auto health = gateway_.health(deadline_);
    if (!health) return health.error();
    members(*health);
    alarms(*health);
    line();
    if (!health->full && !health->corrupt) speed();  // else etcd refuses to write, as was said
    return worst_first();
  }

 private:
  void members(const Gateway::Health& health) {
    if (health.members < 3) {
      add("no-majority-to-lose", Severity::warning,
          "the cluster has " + std::to_string(health.members) +
              (health.members == 1 ? " member" : " members"),
          "when one is down nothing is granted or renewed; when its disk is gone, so are the locks",
          "three members or five");
    }
    for (const std::string& endpoint : settings_.endpoints) {
      Settings alone = settings_;
      alone.endpoints = {endpoint};
      Gateway one(alone);
      const auto patience = [&] { return std::min(deadline_, BootClock::now() + kPatience); };
      if (one.health(patience())) {
        if (const auto version = one.version(patience())) versions_.insert(*version);
        continue;
      }
      add("member-down", Severity::warning, endpoint + " does not answer",
          "one fault less is left until nothing is granted or renewed",
          "bring it back, or take it out of the cluster and of the URL");
    }
    const auto old = std::ranges::find_if(versions_, revokes_live_leases);
    if (old != versions_.end() && health.members > 1) {
      add("stale-leader-revokes", Severity::warning, "a member runs etcd " + *old,
          "a leader that stands still until it is replaced, for a slow disk or CPU, then revokes "
          "leases that are alive: their locks are granted again while their holders believe, and "
          "only the fence refuses them",
          "etcd 3.4.31, 3.5.13 or newer");
    }
    if (settings_.endpoints.size() < health.members) {
      add("unnamed-members", Severity::advice,
          "the URL names " + std::to_string(settings_.endpoints.size()) + " of " +
              std::to_string(health.members) + " members",
          "when those are down the others are not asked", "name all of them");
    }
  }

  void alarms(const Gateway::Health& health) {
    if (health.full) {
      add("space-quota", Severity::danger, "etcd's space quota is used up",
          "nothing is granted, and leases are lost",
          "compact and defragment, 'etcdctl alarm disarm', and set --auto-compaction-retention=1h");
    }
    if (health.corrupt) {
      add("corrupt", Severity::danger, "the members disagree about what they keep",
          "two holders may believe in one lock", "replace the member that is wrong");
    }
  }

  void line() {
    if (settings_.endpoints.front().starts_with("https://") && !settings_.tls.verify) {
      add("tls-unverified", Severity::danger, "nobody checks who answers (verify=no)",
          "anyone who answers gets the password, and can say of any lock that it is free",
          "give the cluster's CA with ?ca= and leave out verify=no");
    }
    const bool local = std::ranges::all_of(settings_.endpoints, [](const std::string& endpoint) {
      return endpoint.find("//127.") != std::string::npos ||
             endpoint.find("//localhost") != std::string::npos ||
             endpoint.find("//[::1]") != std::string::npos;
    });
    if (!settings_.password.empty() && settings_.endpoints.front().starts_with("http://") &&
        !local) {
      add("password-in-clear", Severity::warning, "the password goes over the network as it is",
          "anyone who listens can take, break and forget any lock", "etcds:// instead of etcd://");
    }
  }

  // Made and deleted at once.
  void speed() {
    const std::string key = settings_.prefix + "/doctor";
    const auto slowest = slowest_of(4, [&] {
      Txn txn;
      txn.then = {{.what = Op::What::put, .key = key, .value = ""}};
      const auto put = gateway_.txn(txn, deadline_);
      txn.then = {{.what = Op::What::erase, .key = key}};
      return put && put->succeeded && gateway_.txn(txn, deadline_).has_value();
    });
    if (!slowest) {
      add("not-writable", Severity::danger, "nothing can be written below " + settings_.prefix,
          "no lock can be taken",
          "grant the user readwrite on the prefix " + settings_.prefix + "/");
    } else {
      add(slow_finding(*slowest / 2, ttl_, settings_.location));
    }
  }

  const Settings& settings_;
  const Millis ttl_;
  const Deadline deadline_;
  Gateway gateway_;
  std::set<std::string> versions_;
};

}  // namespace

bool revokes_live_leases(const std::string& version) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (std::sscanf(version.c_str(), "%d.%d.%d", &major, &minor, &patch) != 3) return false;
  const std::tuple known{major, minor, patch};
  return known < std::tuple{3, 4, 31} ||
         (known >= std::tuple{3, 5, 0} && known < std::tuple{3, 5, 13});
}

Result<std::vector<Finding>> examine(const Settings& settings, Millis ttl, Deadline deadline) {
  return Examiner(settings, ttl, deadline).run();
}

}  // namespace baton::store::etcd
