#include "store/redis/examine.h"

#include <charconv>
#include <utility>

#include "store/common/findings.h"

namespace baton::store::redis {
namespace {

class Examiner : private Findings {
 public:
  explicit Examiner(const Facts& facts) : facts_(facts) {}

  std::vector<Finding> run(std::vector<Finding> measured) {
    if (facts_.info.empty()) {
      add("not-visible", Severity::advice, "this user may not see INFO",
          "nobody can tell whether locks survive a crash of this server",
          "let the user of 'baton store doctor' have +info and +config|get");
    }
    if (facts_.replica) {
      add("read-only-replica", Severity::danger, "this server is a read-only replica",
          "no lock can be taken, renewed or released here", "give the address of the master");
    }
    line();
    memory();
    if (!facts_.info.empty()) persistence();
    replication();
    for (Finding& finding : measured) add(std::move(finding));
    return worst_first();
  }

 private:
  [[nodiscard]] std::string info(const std::string& name) const {
    const auto it = facts_.info.find(name);
    return it == facts_.info.end() ? std::string() : it->second;
  }

  void line() {
    if (facts_.unverified) {
      add("tls-unverified", Severity::danger, "nobody checks who answers (verify=no)",
          "anyone who answers gets the password, and can say of any lock that it is free",
          "give the server's CA with ?ca= and leave out verify=no");
    }
    if (facts_.password_in_clear) {
      add("password-in-clear", Severity::warning, "the password goes over the network as it is",
          "anyone who listens can take, break and forget any lock",
          "rediss:// instead of redis://");
    }
  }

  void memory() {
    if (facts_.memory_policy.empty() || facts_.memory_policy == "noeviction") return;
    const bool limited = facts_.memory_limit != "0";
    add("eviction", limited ? Severity::danger : Severity::advice,
        "maxmemory-policy is " + facts_.memory_policy,
        limited ? "when memory is full, Redis deletes locks that are held, and grants them again"
                : "no harm while maxmemory is 0; with a limit, Redis would delete locks",
        "CONFIG SET maxmemory-policy noeviction");
  }

  void persistence() {
    if (info("aof_enabled") != "1") {
      add("no-append-only-file", Severity::warning, "there is no append-only file",
          "a restart of the server forgets locks that are held; only the fence protects then",
          "appendonly yes and appendfsync always");
    } else if (!facts_.fsync.empty() && facts_.fsync != "always") {
      add("late-flush", Severity::warning, "appendfsync is " + facts_.fsync,
          "a crash of the server forgets the last second of locks; only the fence protects then",
          "CONFIG SET appendfsync always");
    }
  }

  void replication() {
    const std::string text = info("connected_slaves");
    int replicas = 0;
    std::from_chars(text.data(), text.data() + text.size(), replicas);
    if (facts_.wait_replicas > replicas) {
      add("too-few-replicas", Severity::danger,
          "wait_replicas is " + std::to_string(facts_.wait_replicas) + ", and " +
              std::to_string(replicas) + " are there",
          "nothing is granted or renewed, and leases are lost",
          "bring the replicas back, or lower wait_replicas");
    } else if (replicas > 0 && facts_.wait_replicas == 0) {
      add("asynchronous-replica", Severity::warning,
          "replicas follow this server, and nobody waits for them",
          "a failover forgets the last locks; only the fence protects then",
          "add ?wait_replicas=1 to the URL, and fence what must not happen twice");
    }
  }

  const Facts& facts_;
};

}  // namespace

std::vector<Finding> examine(const Facts& facts, std::vector<Finding> measured) {
  return Examiner(facts).run(std::move(measured));
}

}  // namespace baton::store::redis
