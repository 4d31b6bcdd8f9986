#include "apps/gateway/objects.h"

#include <algorithm>
#include <array>

#include "apps/gateway/kubernetes_objects.h"
#include "apps/gateway/sql_objects.h"
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
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (std::find(parts.begin(), parts.end(), "") != parts.end()) return std::nullopt;
  if (parts.size() == 2) return Target{.kind = parts[0], .name = parts[1]};
  if (parts.size() == 3) return Target{.ns = parts[0], .kind = parts[1], .name = parts[2]};
  return std::nullopt;
}

Guard guard_of(const Lease& lease, std::string owner) {
  return {.tokens = lease.tokens(), .owner = std::move(owner)};
}

Result<std::unique_ptr<ObjectStore>> open_objects(std::string_view url) {
  for (const std::string_view scheme : {"sqlite:", "postgres:", "postgresql:"}) {
    if (url.starts_with(scheme)) return open_sql_objects(url);
  }
  if (url.starts_with("k8s:")) {
#if BATON_HAS_STORE_KUBERNETES
    return open_kubernetes_objects(url);
#else
    return Error{
        .code = Code::unsupported,
        .message = "this build keeps no objects on Kubernetes; use sqlite:PATH or postgres://…"};
#endif
  }
  return Error{
      .code = Code::bad_url,
      .message = "objects are kept in sqlite:PATH, postgres://… or k8s://NAMESPACE, not in '" +
                 redact_url(url) + "'"};
}

}  // namespace baton::gateway
