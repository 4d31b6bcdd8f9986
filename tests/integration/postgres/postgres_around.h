#pragma once

// Who and what stands around a PostgreSQL database: roles with few rights, and a pooling proxy.

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "integration/postgres/postgres_database.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

// Roles belong to the server, so their names must be this test's own.
class Role {
 public:
  explicit Role(const Database& database) : database_(database), name_("role_" + database.name()) {
    Session(database_.url()).sql("CREATE ROLE " + name_ + " LOGIN");
  }
  ~Role() {
    try {
      Session(database_.url()).sql("DROP OWNED BY " + name_ + "; DROP ROLE " + name_);
    } catch (const std::exception&) {
      // The server goes with the test run.
    }
  }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  const Database& database_;
  std::string name_;
};

// PgBouncer in front of the shared server.
class Bouncer {
 public:
  Bouncer(const Database& database, const std::string& mode) : port_(free_port()) {
    const std::string server = database.url();
    const auto at = server.find('@') + 1;
    const auto colon = server.find(':', at);
    const auto slash = server.find('/', at);
    const auto path = dir_ / "pgbouncer.ini";
    std::ofstream(path) << "[databases]\n"
                        << database.name() << " = host=" << server.substr(at, colon - at)
                        << " port=" << server.substr(colon + 1, slash - colon - 1)
                        << " user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "
                        << port_ << "\nunix_socket_dir =\nauth_type = any\npool_mode = " << mode
                        << "\n";
    std::filesystem::permissions(
        dir_.path(), std::filesystem::perms::others_exec | std::filesystem::perms::owner_all);
    const bool root = geteuid() == 0;
    process_ = std::make_unique<Process>(ProcessOptions{
        .argv = {"/usr/sbin/pgbouncer", path.string()}, .user = root ? "postgres" : ""});
    url_ = "postgres://postgres@127.0.0.1:" + std::to_string(port_) + "/" + database.name();
    const bool up = poll_until([&] {
      try {
        return Session(url_).sql("SELECT 1") == "1";
      } catch (const std::exception&) {
        return false;
      }
    });
    if (!up) throw std::runtime_error("pgbouncer: " + process_->err());
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  TempDir dir_{"bouncer"};
  int port_;
  std::unique_ptr<Process> process_;
  std::string url_;
};

}  // namespace baton::test
