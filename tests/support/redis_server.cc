#include "support/redis_server.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "support/postgres_server.h"  // free_port

namespace baton::test {

RedisServer::RedisServer(RedisOptions options) : options_(std::move(options)) {
  // Another test may take the port between our look and the server's bind.
  for (int attempt = 0; attempt < 3; ++attempt) {
    // A cluster node listens on a second port, 10000 higher.
    port_ = free_port();
    if (try_start()) return;
  }
  throw std::runtime_error("Redis does not start: " + log());
}

RedisServer::~RedisServer() {
  try {
    crash();
  } catch (const std::exception&) {
    // The members' destructors kill what is left.
  }
}

void RedisServer::start() {
  if (server_) return;
  if (!try_start()) throw std::runtime_error("Redis does not start: " + log());
}

bool RedisServer::try_start() {
  std::map<std::string, std::string> all{{"bind", "127.0.0.1"},
                                         {"port", std::to_string(port_)},
                                         {"unixsocket", dir_ / "socket"},
                                         {"dir", dir_.path()},
                                         {"save", ""},
                                         {"appendonly", "no"},
                                         {"daemonize", "no"}};
  for (const auto& [name, value] : options_.settings) all[name] = value;

  // exec keeps the pid, so that the server is our direct child and can be stopped by it; its log
  // goes to a file, which outlives the process object.
  std::vector<std::string> argv{"/bin/sh", "-c", R"(exec "$@" >>"$0" 2>&1)", dir_ / "log",
                                "redis-server"};
  for (const auto& [name, value] : all) {
    argv.push_back("--" + name);
    argv.push_back(value);
  }
  server_ = std::make_unique<Process>(ProcessOptions{.argv = std::move(argv), .cwd = dir_.path()});
  // Reads until the test process is gone, however it went, and takes the server along.
  guard_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"/bin/sh", "-c", R"(read -r _ || true; kill -KILL "$1")", "guard",
                              std::to_string(server_->pid())}});
  const bool up =
      poll_until([&] { return answers() || !server_->running(); }) && server_->running();
  if (!up) {
    guard_.reset();
    server_.reset();
  }
  return up;
}

bool RedisServer::answers() const {
  const Finished pinged = run({.argv = {"redis-cli", "-s", dir_ / "socket", "PING"}});
  // One that wants a password answers too; one that loads its data is not ready.
  return pinged.out.starts_with("PONG") || pinged.out.starts_with("NOAUTH");
}

void RedisServer::stop() {
  if (!server_) return;
  guard_.reset();
  server_->kill(SIGTERM);
  const bool stopped = server_->wait().has_value();
  server_.reset();
  if (!stopped) throw std::runtime_error("Redis does not stop: " + log());
}

void RedisServer::crash() {
  if (!server_) return;
  guard_.reset();
  server_->kill(SIGKILL);
  (void)server_->wait();
  server_.reset();
}

std::string RedisServer::url(std::string_view options) const {
  return "redis://" + address() + "/0" + (options.empty() ? "" : "?" + std::string(options));
}

std::string RedisServer::socket_url(std::string_view options) const {
  return "redis+unix://" + (dir_ / "socket").string() +
         (options.empty() ? "" : "?" + std::string(options));
}

pid_t RedisServer::pid() const {
  if (!server_) throw std::logic_error("the Redis server is stopped");
  return server_->pid();
}

std::string RedisServer::log() const {
  std::ifstream file(dir_ / "log", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string RedisServer::ask(const std::vector<std::string>& words) const {
  std::vector<std::string> argv{"redis-cli", "-e", "-s", dir_ / "socket"};
  argv.insert(argv.end(), words.begin(), words.end());
  Finished done = run({.argv = std::move(argv)});
  if (!done.status.success()) throw std::runtime_error("redis-cli: " + done.out + done.err);
  while (done.out.ends_with('\n')) done.out.pop_back();
  return std::move(done.out);
}

}  // namespace baton::test
