#include <poll.h>

#include <chrono>

#include <libpq-fe.h>

#include "apps/warehouse/open_database.h"
#include "baton/fence.h"
#include "baton/locks.h"

namespace baton::warehouse {
namespace {

using Clock = std::chrono::steady_clock;

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

// The first line of what libpq says.
std::string first_line(const char* text) {
  std::string line(text);
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(PGconn* connection, DatabaseOptions options)
      : connection_(connection), options_(std::move(options)) {}

  Result<void> set_up(const std::string& url);
  Result<std::vector<Row>> query(const std::string& sql, const std::vector<Value>& values) override;
  Result<void> script(const std::string& sql) override;
  Result<void> install_fence() override { return baton::install_fence(connection_.get()); }
  Result<void> fence(const Guard& guard) override {
    return baton::fence(connection_.get(), guard.tokens);
  }
  [[nodiscard]] bool still_there() override;
  [[nodiscard]] Kind kind() const override { return Kind::postgres; }

 private:
  Result<Answer> collect(bool sent);
  Result<void> await_answer(Clock::time_point deadline);
  [[nodiscard]] Error gone(const std::string& why) const;
  [[nodiscard]] Error refused(const PGresult* result) const;

  std::unique_ptr<PGconn, Finish> connection_;
  const DatabaseOptions options_;
};

Error PostgresDatabase::gone(const std::string& why) const {
  return {.code = Code::unavailable,
          .message = "the " + options_.what + " does not answer: " + why,
          .retryable = true};
}

Error PostgresDatabase::refused(const PGresult* result) const {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr) return gone(first_line(PQerrorMessage(connection_.get())));
  const std::string_view kind = std::string_view(state).substr(0, 2);
  // Out of resources, stopped by an operator or a timeout, a conflict: another time it may work.
  const bool passes = kind == "53" || kind == "57" || kind == "40" || kind == "08" || kind == "55";
  return {.code = passes ? Code::unavailable : Code::bad_store,
          .message = "the " + options_.what +
                     " refuses: " + (message != nullptr ? first_line(message) : std::string(state)),
          .retryable = passes};
}

Result<void> PostgresDatabase::set_up(const std::string& url) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    return Error{.code = Code::unavailable,
                 .message = "cannot connect to the " + options_.what + " " + redact_url(url) +
                            ": " + first_line(PQerrorMessage(connection_.get())),
                 .retryable = true};
  }
  std::string settings =
      "SET statement_timeout = " + std::to_string(options_.statement_timeout.count());
  settings += "; SET client_min_messages = warning; SET idle_in_transaction_session_timeout = " +
              std::to_string(options_.idle_in_transaction.count());
  if (options_.only_read) settings += "; SET default_transaction_read_only = on";
  return script(settings);
}

Result<void> PostgresDatabase::await_answer(Clock::time_point deadline) {
  while (PQisBusy(connection_.get()) != 0) {
    const auto left = std::chrono::ceil<Millis>(deadline - Clock::now());
    if (left <= Millis(0)) return gone("no answer in time");
    pollfd descriptor{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
    (void)poll(&descriptor, 1, static_cast<int>(left.count()));
    if (PQconsumeInput(connection_.get()) == 0) {
      return gone(first_line(PQerrorMessage(connection_.get())));
    }
  }
  return {};
}

// The server ends a statement that takes too long; if it is the server that stands still, we do.
Result<Answer> PostgresDatabase::collect(bool sent) {
  if (!sent) return gone(first_line(PQerrorMessage(connection_.get())));
  const auto deadline = Clock::now() + options_.statement_timeout + Millis(2'000);
  Answer last;
  std::optional<Error> problem;
  while (true) {
    if (auto ok = await_answer(deadline); !ok) return ok.error();
    Answer next(PQgetResult(connection_.get()));
    if (!next) break;
    const auto status = PQresultStatus(next.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && !problem) {
      problem = refused(next.get());
    }
    last = std::move(next);
  }
  if (problem) return *problem;
  return last;
}

Result<void> PostgresDatabase::script(const std::string& sql) {
  auto answer = collect(PQsendQuery(connection_.get(), sql.c_str()) == 1);
  if (!answer) return answer.error();
  return {};
}

Result<std::vector<Database::Row>> PostgresDatabase::query(const std::string& sql,
                                                           const std::vector<Value>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const Value& value : values) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    texts.push_back(whole != nullptr ? std::to_string(*whole) : std::get<std::string>(value));
  }
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  auto answer =
      collect(PQsendQueryParams(connection_.get(), sql.c_str(), static_cast<int>(pointers.size()),
                                nullptr, pointers.data(), nullptr, nullptr, 0) == 1);
  if (!answer) return answer.error();
  const PGresult* result = answer->get();
  std::vector<Row> rows(static_cast<std::size_t>(PQntuples(result)));
  for (int r = 0; r < PQntuples(result); ++r) {
    for (int c = 0; c < PQnfields(result); ++c) {
      rows[static_cast<std::size_t>(r)].emplace_back(
          PQgetvalue(result, r, c), static_cast<std::size_t>(PQgetlength(result, r, c)));
    }
  }
  return rows;
}

bool PostgresDatabase::still_there() {
  pollfd descriptor{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
  if (poll(&descriptor, 1, 0) == 0) return PQstatus(connection_.get()) == CONNECTION_OK;
  return PQconsumeInput(connection_.get()) == 1 && PQstatus(connection_.get()) == CONNECTION_OK;
}

}  // namespace

Result<std::unique_ptr<Database>> open_postgres(const std::string& url,
                                                const DatabaseOptions& options) {
  // What the URL says goes before what stands in front of it here.
  const char* const names[] = {
      "connect_timeout",  "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
      "keepalives_count", "application_name", "dbname",          nullptr};
  const char* const values[] = {"5", "10000", "5", "2", "3", "warehouse", url.c_str(), nullptr};
  auto database = std::make_unique<PostgresDatabase>(PQconnectdbParams(names, values, 1), options);
  if (auto ok = database->set_up(url); !ok) return ok.error();
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace baton::warehouse
