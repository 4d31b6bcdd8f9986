#include "sql/connection.h"

#include <algorithm>
#include <atomic>

#include "sql/transaction.h"
#ifdef BATON_HAS_STORE_POSTGRES
#include "sql/postgres_connection.h"
#endif
#ifdef BATON_HAS_STORE_SQLITE
#include "sql/sqlite_connection.h"
#endif

namespace baton::sql {
namespace {

// For the server's own refusal to arrive before the client gives up.
constexpr Millis kGrace{2'000};

Error refused(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

bool has_nul(const Value& value) {
  const auto holds_nul = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  if (const auto* text = std::get_if<std::string>(&value)) return holds_nul(*text);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return std::any_of(texts->begin(), texts->end(), holds_nul);
  }
  return false;
}

}  // namespace

Statement::Statement(std::string sql) : sql_(std::move(sql)) {
  static std::atomic<std::uint64_t> last{0};
  id_ = ++last;
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& url, const Options& options,
                                                     By by) {
  const Deadline deadline = by.value_or(BootClock::now() + options.statement_timeout);
#ifdef BATON_HAS_STORE_SQLITE
  if (url.starts_with("sqlite:")) return SqliteConnection::open(url, options, deadline);
#endif
#ifdef BATON_HAS_STORE_POSTGRES
  if (url.starts_with("postgres://") || url.starts_with("postgresql://")) {
    return PostgresConnection::open(url, options, deadline);
  }
#endif
  // Not the URL itself: it may hold a password.
  return Error{.code = Code::bad_url,
               .message = (options.name.empty() ? "a database" : options.name) +
                          " is written sqlite:PATH or postgres://user@host/database, not '" +
                          url.substr(0, std::min<std::size_t>(url.find(':'), 20)) + ":…'"};
}

Deadline Connection::limit(By by) const {
  return by.value_or(BootClock::now() + options_.statement_timeout + kGrace);
}

std::string Connection::about(std::string_view problem) const {
  return options_.name + ": " + std::string(problem);
}

Result<void> Connection::check_usable() const {
  if (usable_) return {};
  return Error{.code = Code::unavailable,
               .message = about("this connection is lost; open another"),
               .retryable = true};
}

Result<void> Connection::check_open() const {
  if (in_own_transaction()) return {};
  return Error{.code = Code::bad_request,
               .message = about("the transaction was ended by a statement inside it")};
}

// On PostgreSQL a failed statement dooms its transaction; here on SQLite, too.
template <typename T>
Result<T> Connection::noted(Result<T> result) {
  if (!result && in_transaction_ && !failure_) failure_ = result.error();
  return result;
}

template <typename Sql>
Result<Rows> Connection::checked(const Sql& sql, const Values& values, By by) {
  sqlstate_.clear();
  if (auto usable = check_usable(); !usable) return noted<Rows>(usable.error());
  // It would be committed at once, and alone.
  if (in_transaction_) {
    if (auto open = check_open(); !open) return noted<Rows>(open.error());
  }
  if (std::any_of(values.begin(), values.end(), has_nul)) {
    return noted<Rows>(refused(about("a text has a NUL byte in it; bind it as Bytes")));
  }
  return noted(run(sql, values, limit(by)));
}

Result<Rows> Connection::query(const std::string& sql, const Values& values, By by) {
  return checked(sql, values, by);
}

Result<Rows> Connection::query(const Statement& statement, const Values& values, By by) {
  return checked(statement, values, by);
}

Result<void> Connection::script(const std::string& sql, By by) {
  sqlstate_.clear();
  if (auto usable = check_usable(); !usable) return noted(usable);
  if (in_transaction_) {
    if (auto open = check_open(); !open) return noted(open);
  }
  return noted(run_script(sql, limit(by)));
}

Result<void> Connection::transaction(const std::function<Result<void>(Transaction&)>& body, By by) {
  auto transaction = Transaction::begin(*this, by);
  if (!transaction) return transaction.error();
  if (auto done = body(*transaction); !done) return done;
  return transaction->commit(by);
}

Result<void> Connection::listen(const std::string& channel, By by) {
  sqlstate_.clear();
  if (auto usable = check_usable(); !usable) return noted(usable);
  return noted(subscribe(channel, limit(by)));
}

Result<std::vector<Notification>> Connection::wait_for_notifications(Deadline until) {
  sqlstate_.clear();
  if (auto usable = check_usable(); !usable) return usable.error();
  return noted(receive(until));
}

Result<void> Connection::subscribe(const std::string&, Deadline) {
  return Error{.code = Code::unsupported, .message = about("SQLite has no notifications")};
}

Result<std::vector<Notification>> Connection::receive(Deadline) {
  return Error{.code = Code::unsupported, .message = about("SQLite has no notifications")};
}

}  // namespace baton::sql
