#include "support/etcd_server.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/postgres_server.h"

namespace baton::test {
namespace {

constexpr std::chrono::seconds kShortly{2};  // where another try is made

// Empty if there is no answer, or not all of it, by then.
std::string ask_port(int port, const std::string& request, std::chrono::seconds patience) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{patience.count(), 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char buffer[4096];
    ssize_t size = 0;
    while ((size = ::recv(socket, buffer, sizeof buffer, 0)) > 0) {
      answer.append(buffer, static_cast<std::size_t>(size));
    }
    if (size < 0) answer.clear();
  }
  ::close(socket);
  return answer;
}

std::string post_of(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string number_after(const std::string& text, const std::string& name) {
  const auto at = text.find("\"" + name + "\":\"");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 4;
  return text.substr(begin, text.find('"', begin) - begin);
}

}  // namespace

EtcdServer::EtcdServer(EtcdOptions options)
    : options_(std::move(options)),
      dir_(options_.on_disk ? TempDir("etcd") : TempDir::in_memory("etcd")),
      data_(dir_ / "data") {
  for (int attempt = 0;; ++attempt) {
    members_.clear();
    members_.resize(options_.members);
    for (Member& member : members_) {
      member.client_port = free_port();
      member.peer_port = free_port();
      member.health_port = free_port();
    }
    for (std::size_t i = 0; i < members_.size(); ++i) launch(i);
    const bool up = poll_until([&] {
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (!members_[i].process->running()) return true;
        if (!ready(i)) return false;
      }
      return true;
    });
    bool all = up;
    for (Member& member : members_) all = all && member.process->running();
    if (all) return;
    if (attempt == 2) throw std::runtime_error("etcd does not start: " + log());
    members_.clear();
    std::filesystem::remove_all(data_);  // another test took a port: all begins again
  }
}

EtcdServer::~EtcdServer() {
  for (Member& member : members_) {
    member.guard.reset();
    member.process.reset();
  }
}

void EtcdServer::launch(std::size_t number) {
  Member& member = members_.at(number);
  const auto name = [](std::size_t i) { return "m" + std::to_string(i); };
  const auto peer = [&](std::size_t i) {
    return "http://127.0.0.1:" + std::to_string(members_[i].peer_port);
  };
  std::string cluster;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    cluster += (i == 0 ? "" : ",") + name(i) + "=" + peer(i);
  }
  const std::string client = options_.scheme + "://127.0.0.1:" + std::to_string(member.client_port);
  const std::filesystem::path log = dir_ / ("log-" + std::to_string(number));
  const std::filesystem::path data = data_ / name(number);
  std::vector<std::string> argv{"/bin/sh",
                                "-c",
                                R"(exec "$@" >>"$0" 2>&1)",
                                log,
                                "etcd",
                                "--name",
                                name(number),
                                "--data-dir",
                                data,
                                "--listen-client-urls",
                                client,
                                "--advertise-client-urls",
                                client,
                                "--listen-peer-urls",
                                peer(number),
                                "--initial-advertise-peer-urls",
                                peer(number),
                                "--initial-cluster",
                                cluster,
                                "--initial-cluster-token",
                                dir_.path().filename(),
                                "--listen-metrics-urls",
                                "http://127.0.0.1:" + std::to_string(member.health_port),
                                "--heartbeat-interval",
                                "50",
                                "--election-timeout",
                                "500",
                                "--logger",
                                "zap",
                                "--log-level",
                                "warn"};
  argv.insert(argv.end(), options_.arguments.begin(), options_.arguments.end());
  member.process =
      std::make_unique<Process>(ProcessOptions{.argv = std::move(argv), .cwd = dir_.path()});
  // Reads until the test process is gone, however it went, and takes the server along.
  member.guard = std::make_unique<Process>(ProcessOptions{
      .argv = {"/bin/sh", "-c", R"(read -r _ || true; kill -KILL "$1" && rm -rf "$2")", "guard",
               std::to_string(member.process->pid()), data}});
}

// On a port of its own, which speaks plain HTTP also where clients must use TLS.
bool EtcdServer::ready(std::size_t number) const {
  return ask_port(members_.at(number).health_port, "GET /health HTTP/1.0\r\n\r\n", kShortly)
             .find("\"true\"") != std::string::npos;
}

void EtcdServer::start(std::size_t number) {
  if (members_.at(number).process) return;
  launch(number);
  await(number);
}

// A member alone has no quorum to be ready with.
void EtcdServer::launch_all() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].process) launch(i);
  }
  for (std::size_t i = 0; i < members_.size(); ++i) await(i);
}

void EtcdServer::await(std::size_t number) {
  const bool up = poll_until([&] { return ready(number) || !members_[number].process->running(); });
  if (!up || !members_[number].process->running()) {
    throw std::runtime_error("etcd does not start: " + log(number));
  }
}

void EtcdServer::stop(std::size_t number) {
  Member& member = members_.at(number);
  member.guard->kill(SIGKILL);
  member.guard.reset();
  member.process->kill(SIGKILL);
  member.process->wait();
  member.process.reset();
}

void EtcdServer::restart(std::size_t member) {
  stop(member);
  start(member);
}

std::size_t EtcdServer::leader() {
  std::size_t found = 0;
  const bool any = poll_until(
      [&] {
        for (std::size_t i = 0; i < members_.size(); ++i) {
          if (!members_[i].process) continue;
          const std::string status =
              ask_port(members_[i].client_port, post_of("/v3/maintenance/status", "{}"), kShortly);
          const std::string leader = number_after(status, "leader");
          if (!leader.empty() && leader == number_after(status, "member_id"))
            return found = i, true;
        }
        return false;
      },
      patience, std::chrono::milliseconds(50));
  if (!any) throw std::runtime_error("the etcd cluster has no leader");
  return found;
}

std::string EtcdServer::url(const std::string& more) const {
  std::string text = options_.scheme == "https" ? "etcds://" : "etcd://";
  for (std::size_t i = 0; i < members_.size(); ++i) text += (i == 0 ? "" : ",") + endpoint(i);
  return text + more;
}

std::string EtcdServer::endpoint(std::size_t member) const {
  return "127.0.0.1:" + std::to_string(members_.at(member).client_port);
}

std::string EtcdServer::log(std::size_t member) const {
  std::ifstream file(dir_ / ("log-" + std::to_string(member)), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string EtcdServer::post(std::size_t member, const std::string& path,
                             const std::string& body) const {
  std::string answer = ask_port(members_.at(member).client_port, post_of(path, body), patience);
  if (answer.empty()) throw std::runtime_error("etcd does not answer to " + path);
  return answer;
}

}  // namespace baton::test
