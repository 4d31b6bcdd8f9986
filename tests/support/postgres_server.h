#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

struct PostgresOptions {
  std::map<std::string, std::string> settings;  // as in postgresql.conf
};

// A PostgreSQL server of this test's own, for tests that stop it, crash it or need other settings.
// Tests that only need *a* server share the one named by $BATON_TEST_POSTGRES, which is cheaper.
//
// It listens on 127.0.0.1 and on a socket in its own directory, trusts every local user, and keeps
// its port and data over restarts. It ends with this object, and also if the test process dies.
// Not thread-safe. Every failure is an exception: a missing server is never a reason to skip.
class PostgresServer {
 public:
  enum class StopMode {
    fast,       // disconnects clients and shuts down cleanly
    immediate,  // quits without a checkpoint, so that the next start recovers as from a crash
  };

  // Starts the server and returns when it accepts connections.
  explicit PostgresServer(PostgresOptions options = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  void start();
  void stop(StopMode mode = StopMode::fast);  // does nothing if it is stopped
  void restart(StopMode mode = StopMode::fast);
  void crash() { stop(StopMode::immediate); }
  bool running() const { return server_ != nullptr; }

  // From the next start on it is a standby, of nobody: it can be read only.
  void make_standby() const;

  // Takes effect at the next start.
  void set(const std::string& name, const std::string& value) { options_.settings[name] = value; }

  std::string url(std::string_view database = "postgres") const;         // over TCP
  std::string socket_url(std::string_view database = "postgres") const;  // over the Unix socket
  int port() const { return port_; }
  pid_t pid() const;  // of the postmaster; throws if stopped
  std::string log() const;

  // The outcome of one statement run by psql as superuser: rows a line, columns separated by '|'.
  std::string sql(const std::string& statement, const std::string& database = "postgres") const;

 private:
  void initialise();
  bool try_start();
  bool ready() const;

  PostgresOptions options_;
  TempDir dir_{"pg"};
  std::filesystem::path bin_;
  std::string user_;  // the server refuses to run as root
  int port_ = 0;
  std::unique_ptr<Process> server_;
  std::unique_ptr<Process> guard_;
};

// A port nobody listens on now, outside the range from which the kernel picks ports for outgoing
// connections, so that it stays free while a server restarts.
int free_port();

}  // namespace baton::test
