#include "support/postgres_server.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace baton::test {
namespace {

namespace fs = std::filesystem;

// Debian keeps the server's programs out of PATH, one folder per major version.
fs::path find_binaries() {
  if (const char* chosen = std::getenv("BATON_TEST_PG_BINDIR")) return chosen;
  fs::path newest;
  int newest_version = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const int version = std::atoi(entry.path().filename().c_str());
    if (version > newest_version && fs::exists(entry.path() / "bin/postgres")) {
      newest_version = version;
      newest = entry.path() / "bin";
    }
  }
  if (newest.empty()) throw std::runtime_error("no PostgreSQL server is installed");
  return newest;
}

void give_to(const std::string& user, const fs::path& path) {
  const passwd* entry = ::getpwnam(user.c_str());
  if (entry == nullptr) throw std::runtime_error("no such user: " + user);
  if (::chown(path.c_str(), entry->pw_uid, entry->pw_gid) != 0) {
    throw std::system_error(errno, std::generic_category(), "chown " + path.string());
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

}  // namespace

int free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(20000, 32000);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int port = ports(random);
    if (is_free(port)) return port;
  }
  throw std::runtime_error("no free port");
}

PostgresServer::PostgresServer(PostgresOptions options)
    : options_(std::move(options)), bin_(find_binaries()) {
  if (::geteuid() == 0) {
    user_ = "postgres";
    give_to(user_, dir_.path());
  }
  initialise();
  // Another test may take the port between our look and the server's bind.
  for (int attempt = 0; attempt < 3; ++attempt) {
    port_ = free_port();
    if (try_start()) return;
  }
  throw std::runtime_error("PostgreSQL does not start: " + log());
}

PostgresServer::~PostgresServer() {
  try {
    stop(StopMode::immediate);
  } catch (const std::exception&) {
    // The members' destructors kill what is left.
  }
}

void PostgresServer::initialise() {
  const Finished made =
      run({.argv = {bin_ / "initdb", "--pgdata", dir_ / "data", "--username", "postgres", "--auth",
                    "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"},
           .cwd = dir_.path(),
           .user = user_});
  if (!made.status.success()) throw std::runtime_error("initdb: " + made.err);
}

void PostgresServer::start() {
  if (server_) return;
  if (!try_start()) throw std::runtime_error("PostgreSQL does not start: " + log());
}

bool PostgresServer::try_start() {
  std::map<std::string, std::string> all{{"listen_addresses", "127.0.0.1"},
                                         {"port", std::to_string(port_)},
                                         {"unix_socket_directories", dir_.path()},
                                         {"shared_buffers", "32MB"},
                                         {"logging_collector", "off"}};
  for (const auto& [name, value] : options_.settings) all[name] = value;

  // exec keeps the pid, so that the server is our direct child and can be stopped by it; its log
  // goes to a file, which outlives the process object.
  std::vector<std::string> argv{
      "/bin/sh", "-c",         R"(exec "$@" >>"$0" 2>&1)", dir_ / "log", bin_ / "postgres",
      "-D",      dir_ / "data"};
  for (const auto& [name, value] : all) {
    argv.emplace_back("-c");
    argv.push_back(name + "=" + value);
  }
  server_ = std::make_unique<Process>(
      ProcessOptions{.argv = std::move(argv), .cwd = dir_.path(), .user = user_});
  // Reads until the test process is gone, however it went, and takes the server along. (A parent
  // death signal would already fire at the end of the thread that started the server.)
  guard_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"/bin/sh", "-c", R"(read -r _ || true; kill -QUIT "$1")", "guard",
                              std::to_string(server_->pid())},
                     .user = user_});

  const bool up = poll_until([&] { return ready() || !server_->running(); }) && server_->running();
  if (!up) {
    guard_.reset();
    server_.reset();
  }
  return up;
}

// The server says in the last line of its pid file when it accepts connections. The file of a
// crashed predecessor names another pid.
bool PostgresServer::ready() const {
  std::ifstream file(dir_ / "data/postmaster.pid");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line != std::to_string(server_->pid())) return false;
    if (number == 8) return line.starts_with("ready") || line.starts_with("standby");
  }
  return false;
}

void PostgresServer::stop(StopMode mode) {
  if (!server_) return;
  guard_.reset();
  server_->kill(mode == StopMode::fast ? SIGINT : SIGQUIT);
  const bool stopped = server_->wait().has_value();
  server_.reset();
  if (!stopped) throw std::runtime_error("PostgreSQL does not stop: " + log());
}

void PostgresServer::make_standby() const {
  const fs::path signal = dir_ / "data/standby.signal";
  std::ofstream(signal).flush();
  if (!user_.empty()) give_to(user_, signal);
}

void PostgresServer::restart(StopMode mode) {
  stop(mode);
  start();
}

std::string PostgresServer::url(std::string_view database) const {
  return "postgres://postgres@127.0.0.1:" + std::to_string(port_) + "/" + std::string(database);
}

std::string PostgresServer::socket_url(std::string_view database) const {
  return "postgres:///" + std::string(database) + "?user=postgres&host=" + dir_.path().string() +
         "&port=" + std::to_string(port_);
}

pid_t PostgresServer::pid() const {
  if (!server_) throw std::logic_error("the PostgreSQL server is stopped");
  return server_->pid();
}

std::string PostgresServer::log() const { return read_file(dir_ / "log"); }

std::string PostgresServer::sql(const std::string& statement, const std::string& database) const {
  Finished done =
      run({.argv = {bin_ / "psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set",
                    "ON_ERROR_STOP=1", "--dbname", url(database), "--command", statement}});
  if (!done.status.success()) throw std::runtime_error("psql: " + done.err);
  while (done.out.ends_with('\n')) done.out.pop_back();
  return std::move(done.out);
}

}  // namespace baton::test
