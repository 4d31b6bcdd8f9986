#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/gateway/kubernetes_record.h"
#include "store/kubernetes/api_server.h"

namespace baton::gateway {

// The custom resources of one type in a namespace. Every call returns within seconds. Thread-safe.
// An object that cannot be read counts as none, so that it troubles only its maker.
template <typename Object>
class KubernetesResource {
 public:
  explicit KubernetesResource(store::kubernetes::ApiServer& server);

  [[nodiscard]] Result<std::optional<Record<Object>>> get(const std::string& name);

  // Which state of the world: as it is now; perhaps a moment ago, which costs the server little; or
  // just when an object got this version.
  struct When {
    enum class Kind { now, lately, at } kind = Kind::now;
    std::string version;
  };
  static When now() { return {When::Kind::now, {}}; }
  static When lately() { return {When::Kind::lately, {}}; }
  static When at(std::string version) { return {When::Kind::at, std::move(version)}; }

  [[nodiscard]] Result<std::vector<Record<Object>>> list(const std::string& selector,
                                                         const When& when);

  // Nothing: the name is taken.
  [[nodiscard]] Result<std::optional<Record<Object>>> create(const Object& object,
                                                             const Guard& guard);

  // Changes the status as `decide` says, looking again whenever somebody else was faster. Gives
  // what it has become; nothing if there is no such object, or `decide` wants nothing done.
  using Decide = std::function<std::optional<Change>(const Record<Object>&)>;
  [[nodiscard]] Result<std::optional<Record<Object>>> change(const std::string& name,
                                                             const Decide& decide);

  // Takes it out of the lists of active ones. Once it has ended, nothing depends on this.
  [[nodiscard]] Result<void> put_away(const std::string& name);

  // False: it had gone before.
  [[nodiscard]] Result<bool> remove(const Record<Object>& record);

 private:
  void skip(const std::string& name);

  store::kubernetes::ApiServer& server_;
  const std::string resource_;  // as RBAC calls it
  const std::string path_;      // of all of them
  std::mutex mutex_;
  std::set<std::string> skipped_;  // and told of
};

}  // namespace baton::gateway
