#include "support/kube_server.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <unistd.h>

#include "json/json.h"
#include "support/postgres_server.h"  // free_port

namespace baton::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// As find_kube in ./dev.
std::string find_program() {
  if (auto named = variable("BATON_TEST_KUBE_APISERVER"); !named.empty()) return named;
  if (const auto assets = variable("KUBEBUILDER_ASSETS"); !assets.empty()) {
    if (fs::exists(fs::path(assets) / "kube-apiserver")) return fs::path(assets) / "kube-apiserver";
  }
  const auto cache = variable("XDG_CACHE_HOME");
  const fs::path folder = cache.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(cache);
  std::string newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "baton", ignored)) {
    const bool executable = ::access(entry.path().c_str(), X_OK) == 0;
    const std::string name = entry.path().filename().string();
    if (name.starts_with("kube-apiserver-") && !name.ends_with(".new") && executable) {
      newest = std::max(newest, entry.path().string());
    }
  }
  return newest.empty() ? "kube-apiserver" : newest;
}

std::unique_ptr<Process> start_with_log(const fs::path& log, std::vector<std::string> command) {
  // exec keeps the pid, so that the server is our direct child and can be stopped by it.
  std::vector<std::string> argv{"/bin/sh", "-c", R"(exec "$@" >>"$0" 2>&1)", log};
  argv.insert(argv.end(), std::make_move_iterator(command.begin()),
              std::make_move_iterator(command.end()));
  return std::make_unique<Process>(ProcessOptions{.argv = std::move(argv)});
}

void must_run(std::vector<std::string> argv) {
  const Finished done = run({.argv = std::move(argv)});
  if (!done.status.success()) throw std::runtime_error("openssl: " + done.err);
}

}  // namespace

KubeServer::KubeServer()
    : program_(find_program()),
      client_(std::make_unique<http_client::HttpClient>(
          http_client::HttpSettings{.tls = {.ca_file = dir_ / "certs/apiserver.crt"}})) {
  fs::create_directory(dir_ / "certs");
  make_keys();
  write_tokens();
  start_etcd();
  // Another test may take the port between our look and the server's bind.
  for (int attempt = 0; attempt < 3 && server_ == nullptr; ++attempt) {
    port_ = free_port();
    try {
      start();
    } catch (const std::exception&) {
      if (attempt == 2) throw;
    }
  }
}

KubeServer::~KubeServer() {
  server_guard_.reset();
  server_.reset();
  etcd_guard_.reset();
  etcd_.reset();
}

void KubeServer::make_keys() const {
  must_run({"openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out",
            dir_ / "accounts.key"});
  must_run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", "/CN=test-clients", "-keyout", dir_ / "clients.key",
            "-out", dir_ / "clients.crt"});
}

std::string KubeServer::token(std::string_view user) { return "token-of-" + std::string(user); }

void KubeServer::write_tokens() const {
  std::string lines;
  for (const auto user : kUsers) {
    const bool again = std::find(replaced_.begin(), replaced_.end(), user) != replaced_.end();
    lines += token(user) + (again ? "-again," : ",") + std::string(user) + "," + std::string(user);
    lines += user == "admin" ? ",system:masters\n" : "\n";
  }
  write_file(dir_ / "tokens.csv", lines);
}

void KubeServer::replace_token(const std::string& user) {
  replaced_.push_back(user);
  write_tokens();
}

// Reads until the test process is gone, however it went, and takes the server along.
void KubeServer::guard(std::unique_ptr<Process>& guard, const Process& process) const {
  guard = std::make_unique<Process>(
      ProcessOptions{.argv = {"/bin/sh", "-c", R"(read -r _ || true; kill -KILL "$1")", "guard",
                              std::to_string(process.pid())}});
}

void KubeServer::start_etcd() {
  for (int attempt = 0; attempt < 3; ++attempt) {
    etcd_port_ = free_port();
    const std::string url = "http://127.0.0.1:" + std::to_string(etcd_port_);
    const std::string peers = "http://127.0.0.1:" + std::to_string(free_port());
    etcd_ = start_with_log(
        dir_ / "etcd.log",
        {"etcd", "--name", "one", "--data-dir", dir_ / "etcd", "--listen-client-urls", url,
         "--advertise-client-urls", url, "--listen-peer-urls", peers,
         "--initial-advertise-peer-urls", peers, "--initial-cluster", "one=" + peers});
    guard(etcd_guard_, *etcd_);
    const auto healthy = [&] {
      const auto answer = client_->send({.url = url + "/health"}, BootClock::now() + 1s);
      return answer && answer->ok();
    };
    if (poll_until([&] { return healthy() || !etcd_->running(); }, 60s, 20ms) && etcd_->running()) {
      return;
    }
    etcd_guard_.reset();
    etcd_.reset();
    fs::remove_all(dir_ / "etcd");
  }
  throw std::runtime_error("etcd does not start: " + read_file(dir_ / "etcd.log"));
}

void KubeServer::start() {
  server_ = start_with_log(
      dir_ / "apiserver.log",
      {program_, "--etcd-servers=http://127.0.0.1:" + std::to_string(etcd_port_),
       "--secure-port=" + std::to_string(port_), "--bind-address=127.0.0.1",
       "--cert-dir=" + (dir_ / "certs").string(),
       "--service-account-key-file=" + (dir_ / "accounts.key").string(),
       "--service-account-signing-key-file=" + (dir_ / "accounts.key").string(),
       "--service-account-issuer=https://baton.test",
       "--token-auth-file=" + (dir_ / "tokens.csv").string(),
       "--client-ca-file=" + (dir_ / "clients.crt").string(), "--authorization-mode=RBAC",
       "--service-cluster-ip-range=10.0.0.0/24",
       // No controllers run here: nobody makes accounts, and nobody counts quotas. The plug-in for
       // quotas asks the server itself at every create, and has got stuck at that under load.
       "--disable-admission-plugins=ServiceAccount,ResourceQuota", "--shutdown-delay-duration=0s",
       "--v=1"});
  guard(server_guard_, *server_);
  if (poll_until([&] { return ready() || !server_->running(); }, 180s, 50ms) &&
      server_->running()) {
    return;
  }
  server_guard_.reset();
  server_.reset();
  throw std::runtime_error("kube-apiserver does not start: " + log().substr(0, 4000));
}

bool KubeServer::ready() const {
  const auto answer = client_->send({.url = address() + "/readyz"}, BootClock::now() + 2s);
  return answer && answer->status == 200;
}

void KubeServer::stop() {
  if (!server_) return;
  server_guard_.reset();
  server_->kill(SIGTERM);
  // It waits for the watches of its clients, which go on for minutes.
  (void)server_->wait(5s);
  server_.reset();
}

void KubeServer::crash() {
  server_guard_.reset();
  server_.reset();
}

pid_t KubeServer::pid() const {
  if (!server_) throw std::logic_error("the kube-apiserver is stopped");
  return server_->pid();
}

std::string KubeServer::log() const { return read_file(dir_ / "apiserver.log"); }

std::string KubeServer::address() const { return "https://127.0.0.1:" + std::to_string(port_); }

http_client::HttpResponse KubeServer::call(const std::string& method, const std::string& path,
                                           const std::string& body, std::string_view user) const {
  auto answer = client_->send({.method = method,
                               .url = address() + path,
                               .headers = {{"Authorization", http_client::bearer_auth(token(user))},
                                           {"Content-Type", "application/json"}},
                               .body = body},
                              BootClock::now() + 30s);
  return std::move(answer).value();
}

void KubeServer::create(const std::string& path, const std::string& body) const {
  const auto answer = call("POST", path, body);
  if (!answer.ok()) throw std::runtime_error("POST " + path + ": " + answer.body);
}

void KubeServer::create_yaml(const std::string& path, const std::string& text) const {
  const auto answer =
      client_->send({.method = "POST",
                     .url = address() + path,
                     .headers = {{"Authorization", http_client::bearer_auth(token("admin"))},
                                 {"Content-Type", "application/yaml"}},
                     .body = text},
                    BootClock::now() + 30s);
  if (!answer.value().ok()) throw std::runtime_error("POST " + path + ": " + answer->body);
}

void KubeServer::create_types(const fs::path& yaml) const {
  const std::string types = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const std::string text = read_file(yaml);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find("\n---\n", begin), text.size());
    create_yaml(types, text.substr(begin, end - begin));
    begin = end + 5;
  }
  const auto established = [](const json& type) {
    for (const json& condition : type.value("/status/conditions"_json_pointer, json::array())) {
      if (condition["type"] == "Established") return condition["status"] == "True";
    }
    return false;
  };
  const auto all_established = [&] {
    const json list = json::parse(call("GET", types).body);
    return std::all_of(list["items"].begin(), list["items"].end(), established);
  };
  if (!poll_until(all_established, 60s, 20ms)) throw std::runtime_error("types: not established");
}

std::string KubeServer::create_namespace() {
  std::string name = "test-" + std::to_string(++spaces_);
  create("/api/v1/namespaces",
         json{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}}.dump());
  return name;
}

void KubeServer::allow(const std::string& user, const std::string& space,
                       const std::vector<std::string>& verbs) const {
  const std::string base = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space;
  const std::string role = "test-" + user;
  call("DELETE", base + "/roles/" + role);
  create(
      base + "/roles",
      json{
          {"metadata", {{"name", role}}},
          {"rules",
           {{{"apiGroups", {"coordination.k8s.io"}}, {"resources", {"leases"}}, {"verbs", verbs}}}}}
          .dump());
  const auto bound =
      call("POST", base + "/rolebindings",
           json{{"metadata", {{"name", role}}},
                {"roleRef",
                 {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", role}}},
                {"subjects",
                 {{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user}}}}}
               .dump());
  if (!bound.ok() && bound.status != 409) throw std::runtime_error("rolebinding: " + bound.body);
}

bool KubeServer::may(const std::string& user, const std::string& space, const Right& right) const {
  const json review = {{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec",
                        {{"resourceAttributes",
                          {{"namespace", space},
                           {"verb", right.verb},
                           {"group", right.group},
                           {"resource", right.resource},
                           {"subresource", right.subresource}}}}}};
  const auto answer =
      call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review.dump(), user);
  return json::parse(answer.body).value("/status/allowed"_json_pointer, false);
}

fs::path KubeServer::kubeconfig(const std::string& user, const std::string& space) const {
  fs::path path = dir_ / ("kubeconfig-" + user + "-" + space);
  // JSON is YAML.
  write_file(path,
             json{{"apiVersion", "v1"},
                  {"kind", "Config"},
                  {"current-context", "test"},
                  {"clusters",
                   {{{"name", "here"},
                     {"cluster", {{"server", address()}, {"certificate-authority", ca_file()}}}}}},
                  {"users", {{{"name", user}, {"user", {{"token", token(user)}}}}}},
                  {"contexts",
                   {{{"name", "test"},
                     {"context", {{"cluster", "here"}, {"user", user}, {"namespace", space}}}}}}}
                 .dump(2));
  return path;
}

std::string KubeServer::store_url(const std::string& user, const std::string& space) const {
  return "k8s://" + space + "?kubeconfig=" + kubeconfig(user, space).string();
}

KubeServer::Certificate KubeServer::certificate(const std::string& user) const {
  Certificate made{dir_ / (user + ".crt"), dir_ / (user + ".key")};
  const fs::path request = dir_ / (user + ".csr");
  must_run({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-subj", "/CN=" + user, "-keyout", made.key, "-out", request});
  must_run({"openssl", "x509", "-req", "-in", request, "-CA", dir_ / "clients.crt", "-CAkey",
            dir_ / "clients.key", "-CAcreateserial", "-days", "2", "-out", made.certificate});
  return made;
}

}  // namespace baton::test
