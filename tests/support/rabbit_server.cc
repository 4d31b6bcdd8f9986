#include "support/rabbit_server.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/postgres_server.h"  // free_port

namespace baton::test {
namespace {

// Not those of /usr/sbin, which change to the user rabbitmq.
constexpr const char* kServer = "/usr/lib/rabbitmq/bin/rabbitmq-server";
constexpr const char* kControl = "/usr/lib/rabbitmq/bin/rabbitmqctl";
constexpr const char* kWatermark = "2GB";
constexpr std::chrono::seconds kStartLimit{120};

bool listens(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

RabbitServer::RabbitServer(RabbitOptions options)
    : options_(std::move(options)),
      dir_(options_.on_disk ? TempDir("rabbitmq") : TempDir::in_memory("rabbitmq")) {
  write_file(dir_ / ".erlang.cookie", "BATON-TESTS");
  std::filesystem::permissions(dir_ / ".erlang.cookie", std::filesystem::perms::owner_read);
  write_file(dir_ / "enabled_plugins", "[].\n");
  for (int attempt = 0; attempt < 3; ++attempt) {
    port_ = free_port();
    tls_port_ = free_port();
    distribution_port_ = free_port();
    epmd_port_ = free_port();
    write_configuration();
    if (try_start()) return;
    std::filesystem::remove_all(dir_ / "data");  // another test took a port: all begins again
  }
  throw std::runtime_error("RabbitMQ does not start: " + log());
}

RabbitServer::~RabbitServer() {
  guard_.reset();
  server_.reset();
  epmd_.reset();
}

void RabbitServer::write_configuration() const {
  std::map<std::string, std::string> all{
      {"vm_memory_high_watermark.absolute", kWatermark},
      {"disk_free_limit.absolute", "10MB"},
      {"log.file.level", "warning"},
  };
  const auto local = [](int port) { return "127.0.0.1:" + std::to_string(port); };
  all["listeners.tcp.1"] = local(port_);
  if (options_.tls) all["listeners.ssl.1"] = local(tls_port_);
  for (const auto& [name, value] : options_.settings) all[name] = value;
  std::string text;
  for (const auto& [name, value] : all) text.append(name).append(" = ").append(value).append("\n");
  write_file(dir_ / "rabbitmq.conf", text);
}

std::map<std::string, std::string> RabbitServer::environment() const {
  const auto file = [&](const char* name) { return (dir_ / name).string(); };
  return {
      {"HOME", dir_.path().string()},
      {"ERL_EPMD_PORT", std::to_string(epmd_port_)},
      {"ERL_EPMD_ADDRESS", "127.0.0.1"},
      {"RABBITMQ_NODENAME", "t" + std::to_string(port_) + "@localhost"},
      {"RABBITMQ_DIST_PORT", std::to_string(distribution_port_)},
      {"RABBITMQ_MNESIA_BASE", file("data")},
      {"RABBITMQ_LOG_BASE", file("log")},
      {"RABBITMQ_PID_FILE", file("pid")},
      {"RABBITMQ_CONFIG_FILE", file("rabbitmq.conf")},
      {"RABBITMQ_ENABLED_PLUGINS_FILE", file("enabled_plugins")},
      {"RABBITMQ_CONF_ENV_FILE", "/dev/null"},
      {"RABBITMQ_GENERATED_CONFIG_DIR", file("generated")},
      {"RABBITMQ_ADVANCED_CONFIG_FILE", file("advanced.config")},
      {"RABBITMQ_FEATURE_FLAGS_FILE", file("feature_flags")},
      {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
       "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio "
       "none"},
      {"LANG", "C.UTF-8"},
      {"detached", "1"},  // the script then execs the server, whose pid is ours to stop
  };
}

bool RabbitServer::try_start() {
  // One of our own: RabbitMQ would start one that outlives it.
  epmd_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"epmd", "-port", std::to_string(epmd_port_), "-address", "127.0.0.1"},
                     .cwd = dir_.path()});
  if (!poll_until([&] { return listens(epmd_port_) || !epmd_->running(); }) || !epmd_->running()) {
    epmd_.reset();
    return false;
  }
  server_ = std::make_unique<Process>(ProcessOptions{
      .argv = {"/bin/sh", "-c", R"(exec "$1" >>"$0" 2>&1)", (dir_ / "out").string(), kServer},
      .env = environment(),
      .cwd = dir_.path()});
  // Reads until the test process is gone, however it went, and takes both along.
  guard_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"/bin/sh", "-c", R"(read -r _ || true; kill -KILL "$@")", "guard",
                              std::to_string(server_->pid()), std::to_string(epmd_->pid())}});
  const bool up = poll_until([&] { return listens(port_) || !server_->running(); }, kStartLimit,
                             std::chrono::milliseconds(50)) &&
                  server_->running();
  if (!up) {
    guard_.reset();
    server_.reset();
    epmd_.reset();
  }
  return up;
}

void RabbitServer::start() {
  if (server_) return;
  if (!try_start()) throw std::runtime_error("RabbitMQ does not start: " + log());
}

void RabbitServer::stop() {
  if (!server_) return;
  server_->kill(SIGTERM);
  const bool stopped = server_->wait(kStartLimit).has_value();
  crash();
  if (!stopped) throw std::runtime_error("RabbitMQ does not stop: " + log());
}

void RabbitServer::crash() {
  guard_.reset();
  server_.reset();
  epmd_.reset();
}

std::string RabbitServer::url(std::string_view options) const {
  return "rabbitmq://guest:guest@127.0.0.1:" + std::to_string(port_) + "/" +
         (options.empty() ? "" : "?" + std::string(options));
}

std::string RabbitServer::tls_url(std::string_view options) const {
  return "rabbitmqs://guest:guest@localhost:" + std::to_string(tls_port_) + "/" +
         (options.empty() ? "" : "?" + std::string(options));
}

pid_t RabbitServer::pid() const {
  if (!server_) throw std::logic_error("the RabbitMQ is stopped");
  return server_->pid();
}

std::string RabbitServer::log() const {
  std::string all;
  for (const auto& path :
       {dir_ / "out", dir_ / "log" / ("t" + std::to_string(port_) + "@localhost.log")}) {
    std::ifstream file(path, std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return all;
}

std::string RabbitServer::ctl(const std::vector<std::string>& words) const {
  std::vector<std::string> argv{kControl, "-q"};
  argv.insert(argv.end(), words.begin(), words.end());
  Finished done = run({.argv = std::move(argv), .env = environment(), .cwd = dir_.path()});
  if (!done.status.success()) throw std::runtime_error("rabbitmqctl: " + done.out + done.err);
  return std::move(done.out);
}

void RabbitServer::set_memory_alarm(bool on) const {
  ctl({"set_vm_memory_high_watermark", "absolute", on ? "1" : kWatermark});
}

}  // namespace baton::test
