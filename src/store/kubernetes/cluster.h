#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"
#include "http_client/http_client.h"

namespace baton::store::kubernetes {

// Where the API server is and how to show who we are.
struct Cluster {
  std::string address;  // https://host:port
  std::string space;    // the namespace of the Leases
  http_client::TlsSettings tls;
  std::string token;       // or
  std::string token_file;  // read again when it changes
  std::vector<std::string> warnings;
};

// Where what the URL leaves open is looked for.
struct Surroundings {
  std::function<std::string(const char* name)> variable;  // of the environment
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};
[[nodiscard]] BATON_EXPORT Surroundings process_surroundings();

// k8s://[namespace][?context=…&kubeconfig=…]. With either option, or with $KUBECONFIG: a
// kubeconfig. Else inside a cluster its service account, outside ~/.kube/config.
[[nodiscard]] BATON_EXPORT Result<Cluster> find_cluster(std::string_view url,
                                                        const Surroundings& surroundings);

// From the text of a kubeconfig; `folder` is where its relative file names start. An empty context
// is the current one.
[[nodiscard]] BATON_EXPORT Result<Cluster> read_kubeconfig(std::string_view text,
                                                           const std::string& folder,
                                                           const std::string& context);

}  // namespace baton::store::kubernetes
