#include "apps/gateway/objects.h"

#include <array>

#include "apps/gateway/kubernetes_objects.h"
#include "apps/gateway/sqlite_objects.h"
#include "baton/locks.h"

namespace baton::gateway {
namespace {

constexpr std::array kPhases = {Phase::pending, Phase::running, Phase::completed, Phase::failed};

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::pending: return "Pending";
    case Phase::running: return "Running";
    case Phase::completed: return "Completed";
    case Phase::failed: return "Failed";
  }
  return "?";
}

std::optional<Phase> parse_phase(std::string_view text) {
  for (const Phase phase : kPhases) {
    if (to_string(phase) == text) return phase;
  }
  return std::nullopt;
}

std::string Target::text() const { return (ns.empty() ? "" : ns + "/") + kind + "/" + name; }

std::optional<Target> parse_target(std::string_view text) {
  const auto first = text.find('/');
  if (first == std::string_view::npos) return std::nullopt;
  const auto second = text.find('/', first + 1);
  if (second == std::string_view::npos) {
    return Target{.kind = std::string(text.substr(0, first)),
                  .name = std::string(text.substr(first + 1))};
  }
  return Target{.ns = std::string(text.substr(0, first)),
                .kind = std::string(text.substr(first + 1, second - first - 1)),
                .name = std::string(text.substr(second + 1))};
}

Guard guard_of(const Lease& lease, std::string owner) {
  return {
      .key = lease.key(), .mode = lease.mode(), .token = lease.token(), .owner = std::move(owner)};
}

Result<std::unique_ptr<ObjectStore>> open_objects(std::string_view url) {
  if (url.starts_with("sqlite:")) return open_sqlite_objects(url);
  if (url.starts_with("k8s:")) {
#if BATON_HAS_STORE_KUBERNETES
    return open_kubernetes_objects(url);
#else
    return Error{.code = Code::unsupported,
                 .message = "this build keeps no objects on Kubernetes; use sqlite:PATH"};
#endif
  }
  return Error{.code = Code::bad_url,
               .message = "objects are kept in sqlite:PATH or k8s://NAMESPACE, not in '" +
                          redact_url(url) + "'"};
}

}  // namespace baton::gateway
