#include "store/kubernetes/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "store/common/url.h"

namespace baton::store::kubernetes {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfig = 4 << 20;

struct Wanted {
  std::string space;
  std::string context;
  std::string kubeconfig;
};

// A DNS label, as every namespace is.
bool is_label(std::string_view text) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && alphanumeric(text.front()) &&
         alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return c == '-' || alphanumeric(c); });
}

Result<void> take_option(std::string_view name, std::string_view written, Wanted& wanted) {
  auto value = percent_decoded(written);
  if (!value || value->empty() || value->find('\0') != std::string::npos) {
    return bad_url("an option of the k8s:// URL has no value, or a broken one");
  }
  if (name == "context") {
    wanted.context = std::move(*value);
  } else if (name == "kubeconfig") {
    wanted.kubeconfig = std::move(*value);
  } else {
    return bad_url("a k8s:// URL has the options context and kubeconfig, not '" +
                   std::string(name.substr(0, 32)) + "'");
  }
  return {};
}

Result<Wanted> parse(std::string_view url) {
  if (!url.starts_with("k8s://")) return bad_url("a Kubernetes URL starts with k8s://");
  const auto [place, options] = split_url(url);
  Wanted wanted;
  wanted.space = place;
  if (wanted.space.ends_with('/')) wanted.space.pop_back();
  if (!wanted.space.empty() && !is_label(wanted.space)) {
    return bad_url("k8s:// is followed by a namespace (small letters, digits and '-'), or nothing");
  }
  auto taken = take_options(options, [&](std::string_view name, std::string_view value) {
    return take_option(name, value, wanted);
  });
  if (!taken) return taken.error();
  return wanted;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  char buffer[16384];
  while (file.read(buffer, sizeof buffer), file.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxConfig) return std::nullopt;
  }
  return text;
}

Result<Cluster> from_kubeconfig(const std::string& path, const std::string& context) {
  if (path.find(':') != std::string::npos) {
    return bad_url("$KUBECONFIG names several files; say which with ?kubeconfig=…");
  }
  const auto text = read_file(path);
  if (!text) return bad_url("cannot read the kubeconfig " + path);
  auto cluster = read_kubeconfig(*text, fs::path(path).parent_path().string(), context);
  if (!cluster) cluster.error().message = "the kubeconfig " + path + ": " + cluster.error().message;
  return cluster;
}

Result<Cluster> from_service_account(const Surroundings& around) {
  std::string host = around.variable("KUBERNETES_SERVICE_HOST");
  const std::string port = around.variable("KUBERNETES_SERVICE_PORT");
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  Cluster cluster;
  cluster.address = "https://" + host + ":" + (port.empty() ? "443" : port);
  cluster.token_file = around.service_account + "/token";
  cluster.tls.ca_file = around.service_account + "/ca.crt";
  std::string space = read_file(around.service_account + "/namespace").value_or("");
  while (!space.empty() && space.back() <= ' ') space.pop_back();
  cluster.space = space;
  if (!fs::exists(cluster.token_file)) {
    return bad_url("in a cluster, but " + cluster.token_file +
                   " is not there: does the pod have automountServiceAccountToken: false?");
  }
  return cluster;
}

Result<Cluster> pick(const Wanted& wanted, const Surroundings& around) {
  if (!wanted.kubeconfig.empty()) return from_kubeconfig(wanted.kubeconfig, wanted.context);
  if (const auto named = around.variable("KUBECONFIG"); !named.empty()) {
    return from_kubeconfig(named, wanted.context);
  }
  const bool inside = !around.variable("KUBERNETES_SERVICE_HOST").empty();
  if (inside && wanted.context.empty()) return from_service_account(around);
  const std::string usual = around.variable("HOME") + "/.kube/config";
  if (!fs::exists(usual)) {
    return bad_url("no Kubernetes cluster to be found: there is no " + usual +
                   ", $KUBECONFIG is not set, and this is no pod; say ?kubeconfig=…");
  }
  return from_kubeconfig(usual, wanted.context);
}

}  // namespace

Surroundings process_surroundings() {
  return {.variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  }};
}

Result<Cluster> find_cluster(std::string_view url, const Surroundings& surroundings) {
  auto wanted = parse(url);
  if (!wanted) return wanted.error();
  auto cluster = pick(*wanted, surroundings);
  if (!cluster) return cluster;
  if (!wanted->space.empty()) cluster->space = wanted->space;
  if (cluster->space.empty()) cluster->space = "default";
  if (!is_label(cluster->space)) {
    return bad_url("'" + cluster->space.substr(0, 64) + "' is no namespace");
  }
  return cluster;
}

}  // namespace baton::store::kubernetes
