#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http_client/http_client.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

// A kube-apiserver of this test's own, with an etcd of its own behind it and RBAC in force. The
// program is named by $BATON_TEST_KUBE_APISERVER or found as `./dev kube` finds it.
//
// Both listen on 127.0.0.1 and keep ports and data over restarts. They end with this object, and
// also if the test process dies. Not thread-safe. Every failure is an exception: a missing server
// is never a reason to skip.
class KubeServer {
 public:
  // Each has the token "token-of-NAME". Only admin has rights from the start: all of them.
  static constexpr std::string_view kUsers[] = {"admin", "leaser", "cutter", "nobody"};

  // Returns when the server is ready.
  KubeServer();
  ~KubeServer();
  KubeServer(const KubeServer&) = delete;
  KubeServer& operator=(const KubeServer&) = delete;

  // The apiserver alone; its data stays in etcd.
  void start();
  void stop();   // lets requests end, but waits for no watch
  void crash();  // SIGKILL
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] std::string log() const;

  [[nodiscard]] std::string address() const;  // https://127.0.0.1:PORT
  [[nodiscard]] std::filesystem::path ca_file() const { return dir_ / "certs/apiserver.crt"; }
  [[nodiscard]] static std::string token(std::string_view user);

  // Gives up a token; takes effect at the next start. The user gets "TOKEN-again".
  void replace_token(const std::string& user);

  // One request as that user; any status is an answer.
  http_client::HttpResponse call(const std::string& method, const std::string& path,
                                 const std::string& body = {},
                                 std::string_view user = "admin") const;

  // These throw unless the server agrees.
  void create(const std::string& path, const std::string& body) const;
  void create_yaml(const std::string& path, const std::string& text) const;
  // The types of deploy/kubernetes/crds.yaml; returns when they are established.
  void create_types(const std::filesystem::path& yaml) const;
  std::string create_namespace();  // a new one; gives its name
  void allow(const std::string& user, const std::string& space,
             const std::vector<std::string>& verbs) const;  // on Leases; replaces what was allowed

  // Whether that user has this right: rights are in force a moment after they are given.
  struct Right {
    std::string verb;
    std::string group = "coordination.k8s.io";
    std::string resource = "leases";
    std::string subresource = {};
  };
  [[nodiscard]] bool may(const std::string& user, const std::string& space,
                         const Right& right) const;

  // A kubeconfig with that user's token and the server's CA.
  [[nodiscard]] std::filesystem::path kubeconfig(const std::string& user,
                                                 const std::string& space) const;
  [[nodiscard]] std::string store_url(const std::string& user, const std::string& space) const;

  // PEM files of a client certificate for that user, which the server trusts.
  struct Certificate {
    std::filesystem::path certificate;
    std::filesystem::path key;
  };
  [[nodiscard]] Certificate certificate(const std::string& user) const;

 private:
  void start_etcd();
  void make_keys() const;
  void write_tokens() const;
  [[nodiscard]] bool ready() const;
  void guard(std::unique_ptr<Process>& guard, const Process& process) const;

  TempDir dir_{"kube"};
  std::string program_;
  int etcd_port_ = 0;
  int port_ = 0;
  int spaces_ = 0;
  std::vector<std::string> replaced_;
  std::unique_ptr<Process> etcd_;
  std::unique_ptr<Process> etcd_guard_;
  std::unique_ptr<Process> server_;
  std::unique_ptr<Process> server_guard_;
  std::unique_ptr<http_client::HttpClient> client_;
};

}  // namespace baton::test
