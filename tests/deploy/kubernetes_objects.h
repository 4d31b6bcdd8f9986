#pragma once

// Objects of manifests, and what a real kube-apiserver says to them.

#include <string>

#include <nlohmann/json.hpp>

#include "support/kube_server.h"

namespace baton::test {

// What the server says against an object, of which it keeps nothing; empty: it takes it, and knows
// every field.
[[nodiscard]] std::string kubernetes_refusal(const KubeServer& server, nlohmann::json object);

// As kubernetes_refusal, but the server keeps the object.
[[nodiscard]] std::string kubernetes_create(const KubeServer& server, nlohmann::json object);

// The first of the usual ways out of a container that a pod leaves open, or a limit that it lacks;
// empty: none.
[[nodiscard]] std::string pod_weakness(const nlohmann::json& pod);

}  // namespace baton::test
