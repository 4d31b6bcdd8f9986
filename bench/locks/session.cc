#include "locks/session.h"

#include <poll.h>

#include <stdexcept>

namespace baton::bench {

Session::Session(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (PQstatus(connection_) == CONNECTION_OK) return;
  const std::string why = PQerrorMessage(connection_);
  PQfinish(connection_);
  throw std::runtime_error(why);
}

std::string Session::take(PGresult* result) {
  const auto status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    PQclear(result);
    throw std::runtime_error(PQerrorMessage(connection_));
  }
  std::string value;
  if (PQntuples(result) > 0) value = PQgetvalue(result, 0, 0);
  PQclear(result);
  return value;
}

std::string Session::ask(const std::string& sql) { return take(PQexec(connection_, sql.c_str())); }

void Session::prepare(const char* name, const char* sql) {
  take(PQprepare(connection_, name, sql, 0, nullptr));
}

std::string Session::run(const char* name, const std::vector<const char*>& params) {
  return take(PQexecPrepared(connection_, name, static_cast<int>(params.size()), params.data(),
                             nullptr, nullptr, 0));
}

std::string Session::run_both(const char* first, const char* second,
                              const std::vector<const char*>& params_of_second) {
  const bool sent =
      PQenterPipelineMode(connection_) == 1 &&
      PQsendQueryPrepared(connection_, first, 0, nullptr, nullptr, nullptr, 0) == 1 &&
      PQsendQueryPrepared(connection_, second, static_cast<int>(params_of_second.size()),
                          params_of_second.data(), nullptr, nullptr, 0) == 1 &&
      PQpipelineSync(connection_) == 1;
  if (!sent) throw std::runtime_error(PQerrorMessage(connection_));
  take(PQgetResult(connection_));
  PQgetResult(connection_);  // the end of the first
  std::string value = take(PQgetResult(connection_));
  PQgetResult(connection_);           // the end of the second
  PQclear(PQgetResult(connection_));  // the end of both
  PQexitPipelineMode(connection_);
  return value;
}

std::string Session::run_once(const char* sql, const std::vector<const char*>& params) {
  return take(PQexecParams(connection_, sql, static_cast<int>(params.size()), nullptr,
                           params.data(), nullptr, nullptr, 0));
}

void Session::await_notification() {
  for (;;) {
    if (PQconsumeInput(connection_) == 0) throw std::runtime_error(PQerrorMessage(connection_));
    if (PGnotify* notification = PQnotifies(connection_)) {
      PQfreemem(notification);
      return;
    }
    pollfd waiting{PQsocket(connection_), POLLIN, 0};
    poll(&waiting, 1, -1);
  }
}

}  // namespace baton::bench
