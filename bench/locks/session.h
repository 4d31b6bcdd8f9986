#pragma once

#include <string>
#include <vector>

#include <libpq-fe.h>

namespace baton::bench {

// A bare libpq session, for the floors and for looking at the server. Every failure is an
// exception. For one thread.
class Session {
 public:
  explicit Session(const std::string& url);
  ~Session() { PQfinish(connection_); }
  Session(Session&& other) noexcept : connection_(other.connection_) {
    other.connection_ = nullptr;
  }
  Session& operator=(Session&&) = delete;

  // Runs a script; gives the first column of the first row of its last statement, or nothing.
  std::string ask(const std::string& sql);
  double number(const std::string& sql) { return std::stod(ask(sql)); }

  void prepare(const char* name, const char* sql);

  // Runs a prepared statement; gives the first column of its first row, or nothing.
  std::string run(const char* name, const std::vector<const char*>& params);

  // The same of a statement that is not prepared.
  std::string run_once(const char* sql, const std::vector<const char*>& params);

  // For what takes a connection of its caller.
  [[nodiscard]] PGconn* postgres() { return connection_; }

  // Runs two prepared statements in one round trip; gives what run() gives of the second.
  std::string run_both(const char* first, const char* second,
                       const std::vector<const char*>& params_of_second);

  // Blocks until a notification comes.
  void await_notification();

 private:
  std::string take(PGresult* result);
  PGconn* connection_;
};

}  // namespace baton::bench
