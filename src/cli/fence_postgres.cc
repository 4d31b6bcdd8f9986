#include <libpq-fe.h>

#include "baton/locks.h"
#include "cli/fence_database.h"
#include "store/postgres/url.h"

namespace baton::cli {
namespace {

constexpr const char* kConnectSeconds = "10";

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};

struct Free {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

// libpq speaks in paragraphs.
std::string first_line(const char* message) {
  std::string_view text(message);
  text = text.substr(0, text.find('\n'));
  return std::string(text);
}

// libpq's own complaint would repeat parts of the URL.
Result<void> check_options(const std::string& url) {
  if (auto ok = store::postgres::check_url(url); !ok) return ok;
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, Free> options(PQconninfoParse(url.c_str(), &problem));
  PQfreemem(problem);
  if (options != nullptr) return {};
  return Error{.code = Code::bad_url,
               .message = "cannot understand " + redact_url(url) +
                          "; its options must be those of libpq, with %XX for special characters"};
}

class PostgresFence final : public FenceDatabase {
 public:
  explicit PostgresFence(std::unique_ptr<PGconn, Finish> connection)
      : connection_(std::move(connection)) {}

  Result<void> install() override { return install_fence(connection_.get()); }
  Result<Token> highest() override { return highest_fenced(connection_.get()); }

  Result<void> check(std::span<const FenceToken> tokens) override {
    if (auto ok = execute("BEGIN"); !ok) return ok;
    auto verdict = fence(connection_.get(), tokens);
    (void)execute("ROLLBACK");
    return verdict;
  }

 private:
  Result<void> execute(const char* sql) {
    PGresult* result = PQexec(connection_.get(), sql);
    const bool worked = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (worked) return {};
    return Error{.code = Code::unavailable,
                 .message = first_line(PQerrorMessage(connection_.get())),
                 .retryable = true};
  }

  std::unique_ptr<PGconn, Finish> connection_;
};

}  // namespace

Result<std::unique_ptr<FenceDatabase>> open_postgres_fence(const std::string& url) {
  if (auto ok = check_options(url); !ok) return ok.error();
  const char* const keywords[] = {"dbname", "connect_timeout", "fallback_application_name",
                                  nullptr};
  const char* const values[] = {url.c_str(), kConnectSeconds, "baton fence", nullptr};
  std::unique_ptr<PGconn, Finish> connection(PQconnectdbParams(keywords, values, 1));
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    const bool refused = PQconnectionNeedsPassword(connection.get()) == 1 ||
                         PQconnectionUsedPassword(connection.get()) == 1;
    return Error{.code = refused ? Code::unauthorized : Code::unavailable,
                 .message = "cannot connect to " + redact_url(url) + ": " +
                            first_line(PQerrorMessage(connection.get())),
                 .retryable = !refused};
  }
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  return std::unique_ptr<FenceDatabase>(new PostgresFence(std::move(connection)));
}

}  // namespace baton::cli
