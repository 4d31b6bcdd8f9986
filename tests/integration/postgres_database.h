#pragma once

// What the PostgreSQL tests share: a database a test, and a plain session beside the store.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <libpq-fe.h>

#include "baton/postgres_store.h"
#include "store/postgres/postgres_store.h"

namespace baton::test {

inline Deadline in(Millis span) { return BootClock::now() + span; }
inline Deadline soon() { return in(std::chrono::seconds(30)); }

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
  void migrate() const { open_postgres_admin(url(), soon()).value()->migrate(soon()).value(); }
  [[nodiscard]] std::unique_ptr<LockStore> store(const std::string& options = "") const {
    return open_postgres_store(url() + options, soon()).value();
  }

 private:
  std::string server_;
  std::string name_;
};

inline GrantId grant(std::uint64_t number) { return {0xBA70, number}; }

inline Request request(Verb verb, std::uint64_t number, const std::string& key,
                       Mode mode = Mode::X) {
  Request request;
  request.verb = verb;
  request.grant = grant(number);
  request.asks = {{key, mode}};
  request.predicate = "holding";
  request.owner = "node-" + std::to_string(number);
  request.channel = "process-" + std::to_string(number);
  request.ttl = Millis(30'000);
  request.handoff = Millis(5'000);
  return request;
}

inline Request acquire(std::uint64_t number, const std::string& key, Millis ticket = Millis{0}) {
  Request asked = request(Verb::acquire, number, key);
  asked.ticket = ticket;
  return asked;
}

inline Result<Reply> ask(LockStore& store, const Request& one, Deadline deadline) {
  auto replies = store.apply({&one, 1}, deadline);
  if (!replies) return replies.error();
  return std::move(replies->at(0));
}

inline Reply ask(LockStore& store, const Request& one) { return ask(store, one, soon()).value(); }

}  // namespace baton::test
