#pragma once

// A database a test on the shared PostgreSQL server, and a plain session beside the store. Who
// includes this links libpq and the PostgreSQL store.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <libpq-fe.h>

#include "baton/postgres_store.h"
#include "support/wait.h"

namespace baton::test {

// A session of psql's kind. Every failure is an exception.
class Session {
 public:
  explicit Session(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) {
      const std::string problem = PQerrorMessage(connection_);
      PQfinish(connection_);
      throw std::runtime_error(problem);
    }
  }
  ~Session() { PQfinish(connection_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The first column of the first row of the last statement; empty if there is none.
  std::string sql(const std::string& text) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection_, text.c_str()),
                                                               &PQclear);
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      throw std::runtime_error(PQerrorMessage(connection_));
    }
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }
  PGconn* get() { return connection_; }

 private:
  PGconn* connection_;
};

inline std::string shared_server() {
  const char* url = std::getenv("BATON_TEST_POSTGRES");
  if (url == nullptr) throw std::runtime_error("BATON_TEST_POSTGRES names no server");
  return url;
}

// A new database, dropped at the end of the scope.
class Database {
 public:
  explicit Database(std::string server = shared_server()) : server_(std::move(server)) {
    static std::atomic<int> last{0};
    name_ = "test_" + std::to_string(getpid()) + "_" + std::to_string(++last);
    Session(server_).sql("CREATE DATABASE " + name_ + " TEMPLATE template0 ENCODING 'UTF8'");
  }
  ~Database() {
    try {
      Session(server_).sql("DROP DATABASE " + name_ + " WITH (FORCE)");
    } catch (const std::exception&) {
      // The server goes with the test run.
    }
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string url() const {
    return server_.substr(0, server_.rfind('/') + 1) + name_;
  }
  // The same database for another user.
  [[nodiscard]] std::string url_as(const std::string& user) const {
    const std::string whole = url();
    return "postgres://" + user + whole.substr(whole.find('@'));
  }
  void migrate() const {
    open_postgres_admin(url(), patient()).value()->migrate(patient()).value();
  }
  [[nodiscard]] std::unique_ptr<LockStore> store(const std::string& options = "") const {
    return open_postgres_store(url() + options, patient()).value();
  }

 private:
  static Deadline patient() { return BootClock::now() + patience; }

  std::string server_;
  std::string name_;
};

}  // namespace baton::test
