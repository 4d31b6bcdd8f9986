#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <stdexcept>

#include "http_client/base64.h"
#include "store/kubernetes/cluster.h"

namespace baton::store::kubernetes {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

std::string text_of(const YAML::Node& node, const char* name) {
  const YAML::Node field = node[name];
  if (!field || field.IsNull()) return {};
  if (!field.IsScalar()) refuse(std::string(name) + " is not text");
  return field.Scalar();
}

// The entry of that name in a list of {name: …, <kind>: {…}}.
YAML::Node named(const YAML::Node& root, const char* list, const char* kind,
                 const std::string& name) {
  const YAML::Node entries = root[list];
  if (entries && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap() || text_of(entry, "name") != name) continue;
      const YAML::Node content = entry[kind];
      if (content && content.IsMap()) return content;
    }
  }
  refuse("there is no " + std::string(kind) + " called '" + name + "'");
}

class Reader {
 public:
  explicit Reader(const std::string& folder) : folder_(folder) {}

  // PEM text from NAME-data, or the file that NAME says.
  void read_pem(const YAML::Node& node, const char* name, std::string& pem, std::string& file) {
    const std::string data = text_of(node, (std::string(name) + "-data").c_str());
    if (data.empty()) {
      file = path(text_of(node, name));
      return;
    }
    auto decoded = http_client::from_base64(data);
    if (!decoded || decoded->empty()) refuse(std::string(name) + "-data is not base64");
    pem = std::move(*decoded);
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    if (name.empty() || name.front() == '/') return name;
    return (std::filesystem::path(folder_) / name).string();
  }

 private:
  const std::string& folder_;
};

void read_server(const YAML::Node& node, Reader& reader, Cluster& cluster) {
  cluster.address = text_of(node, "server");
  while (cluster.address.ends_with('/')) cluster.address.pop_back();
  if (!cluster.address.starts_with("https://") && !cluster.address.starts_with("http://")) {
    refuse("the server is not an https:// address");
  }
  reader.read_pem(node, "certificate-authority", cluster.tls.ca_pem, cluster.tls.ca_file);
  if (!text_of(node, "proxy-url").empty()) refuse("proxy-url is not supported");
  if (!text_of(node, "tls-server-name").empty()) refuse("tls-server-name is not supported");
  if (text_of(node, "insecure-skip-tls-verify") == "true") {
    cluster.tls.verify = false;
    cluster.warnings.emplace_back(
        "insecure-skip-tls-verify: anyone who answers at that address is believed to be the API "
        "server, and gets the token");
  }
}

void read_user(const YAML::Node& node, Reader& reader, Cluster& cluster) {
  for (const char* plugin : {"exec", "auth-provider"}) {
    if (!node[plugin]) continue;
    refuse("the user has '" + std::string(plugin) +
           "', which would run a program that Baton does not run: give a context with a token, a "
           "tokenFile or a client certificate, such as a service account's");
  }
  if (node["as"]) refuse("the user impersonates somebody ('as'), which is not supported");
  if (node["username"]) refuse("a user name with a password is not supported");
  cluster.token_file = reader.path(text_of(node, "tokenFile"));
  if (cluster.token_file.empty()) cluster.token = text_of(node, "token");
  reader.read_pem(node, "client-certificate", cluster.tls.cert_pem, cluster.tls.cert_file);
  reader.read_pem(node, "client-key", cluster.tls.key_pem, cluster.tls.key_file);
}

}  // namespace

Result<Cluster> read_kubeconfig(std::string_view text, const std::string& folder,
                                const std::string& context) {
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) refuse("not a mapping");
    const std::string chosen = context.empty() ? text_of(root, "current-context") : context;
    if (chosen.empty()) refuse("there is no current-context; say which with ?context=…");
    const YAML::Node entry = named(root, "contexts", "context", chosen);
    Cluster cluster;
    Reader reader(folder);
    read_server(named(root, "clusters", "cluster", text_of(entry, "cluster")), reader, cluster);
    read_user(named(root, "users", "user", text_of(entry, "user")), reader, cluster);
    cluster.space = text_of(entry, "namespace");
    return cluster;
  } catch (const YAML::Exception& problem) {
    // Its text may repeat what stands in the file.
    return Error{.code = Code::bad_url,
                 .message = "no valid YAML in line " + std::to_string(problem.mark.line + 1)};
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_url, .message = problem.what()};
  }
}

}  // namespace baton::store::kubernetes
