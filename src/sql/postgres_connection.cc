#include "sql/postgres_connection.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include "core/fence.h"
#include "sql/postgres_error.h"
#include "sql/postgres_url.h"
#include "sql/postgres_values.h"
#include "store/common/wait_for.h"

namespace baton::sql {
namespace {

// idle_session_timeout and client_connection_check_interval came with this version.
constexpr int kPostgres14 = 140'000;

std::string session_settings(const Options& options, int server_version) {
  const auto set = [](const std::string& name, Millis value) {
    return "SET " + name + " = " + std::to_string(value.count()) + ";";
  };
  std::string sql = set("statement_timeout", options.statement_timeout) +
                    set("idle_in_transaction_session_timeout", options.idle_in_transaction_timeout);
  if (server_version >= kPostgres14) {
    sql += set("idle_session_timeout", options.idle_session_timeout) +
           // A statement whose client has gone must not keep its locks until it is done.
           set("client_connection_check_interval", Millis(1'000));
  }
  if (options.read_only) sql += "SET default_transaction_read_only = on;";
  return sql + "SET client_min_messages = warning";
}

std::string statement_name(const Statement& statement) {
  return "sql_" + std::to_string(statement.id());
}

}  // namespace

PostgresConnection::PostgresConnection(PGconn* connection, Options options,
                                       std::vector<std::string> secrets)
    : Connection(std::move(options)), connection_(connection), secrets_(std::move(secrets)) {}

PostgresConnection::~PostgresConnection() { PQfinish(connection_); }

Result<std::unique_ptr<Connection>> PostgresConnection::open(const std::string& url,
                                                             Options options, Deadline by) {
  auto parsed = parse_postgres_url(url);
  if (!parsed) return parsed.error();
  if (options.name.empty()) options.name = parsed->location;
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  const auto add = [&](const char* keyword, const char* value) {
    keywords.push_back(keyword);
    values.push_back(value);
  };
  add("application_name", options.application.c_str());
  add("tcp_user_timeout", "10000");
  add("keepalives_idle", "5");
  add("keepalives_interval", "2");
  add("keepalives_count", "3");
  // A later keyword wins: what the URL says goes before these.
  for (const auto& [keyword, value] : parsed->keywords) add(keyword.c_str(), value.c_str());
  add("client_encoding", "UTF8");
  add(nullptr, nullptr);
  PGconn* raw = PQconnectStartParams(keywords.data(), values.data(), 0);
  if (raw == nullptr) return Error{.message = "out of memory", .retryable = true};
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(raw, std::move(options), std::move(parsed->secrets)));
  if (auto connected = connection->connect(by); !connected) return connected.error();
  if (auto set = connection->set_up_session(by); !set) return set.error();
  return std::unique_ptr<Connection>(std::move(connection));
}

Result<void> PostgresConnection::connect(Deadline by) {
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);  // with the SQLSTATE
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
    if (PQstatus(connection_) == CONNECTION_BAD) return broken(Lost::nothing_done);
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!store::wait_for(PQsocket(connection_), events, by)) return late(Lost::nothing_done);
    next = PQconnectPoll(connection_);
    if (next == PGRES_POLLING_FAILED) return broken(Lost::nothing_done);
  }
  PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
  if (PQsetnonblocking(connection_, 1) != 0) return broken(Lost::nothing_done);
  return {};
}

Result<void> PostgresConnection::set_up_session(Deadline by) {
  const int version = PQserverVersion(connection_);
  if (options_.idle_session_timeout > Millis(0) && version < kPostgres14) {
    return Error{.code = Code::unsupported,
                 .message = about("idle_session_timeout needs PostgreSQL 14 or newer")};
  }
  auto done = command(session_settings(options_, version), by, Lost::nothing_done);
  if (!done) return done.error();
  return {};
}

std::string PostgresConnection::without_secrets(const char* message) const {
  std::string text = scrub(readable(message == nullptr ? "" : message), secrets_);
  // The password may also come from a file or the environment.
  if (const char* password = PQpass(connection_); password != nullptr) {
    text = scrub(std::move(text), {password});
  }
  return text.empty() ? "the connection is lost" : text;
}

Error PostgresConnection::broken(Lost lost) {
  usable_ = false;
  const char* message = PQerrorMessage(connection_);
  sqlstate_ = sqlstate_in(message == nullptr ? "" : message);
  Error error = postgres_error(sqlstate_, about(without_secrets(message)));
  error.in_doubt = lost == Lost::in_doubt;
  return error;
}

Error PostgresConnection::late(Lost lost) {
  usable_ = false;
  return {.code = Code::unavailable,
          .message = about("no answer in time"),
          .retryable = true,
          .in_doubt = lost == Lost::in_doubt};
}

Error PostgresConnection::refused(const PGresult* result, Lost lost) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  sqlstate_ = state == nullptr ? "" : state;
  Error error = postgres_error(
      sqlstate_,
      about(without_secrets(message != nullptr ? message : PQerrorMessage(connection_))));
  // An ERROR has been rolled back. Anything worse ends the session, and may come after the commit;
  // but a session that is ended for being idle was doing nothing.
  const bool fatal = severity == nullptr || std::string_view(severity) != "ERROR";
  if (fatal || PQstatus(connection_) == CONNECTION_BAD) {
    usable_ = false;
    error.in_doubt = lost == Lost::in_doubt && sqlstate_ != "25P03" && sqlstate_ != "57P05";
  }
  // A standby cannot be written to, and stale plans go with their session.
  if (sqlstate_ == "25006" || sqlstate_ == "26000" || sqlstate_ == "0A000") usable_ = false;
  return error;
}

Result<void> PostgresConnection::wait_for_answer(Deadline by, Lost lost) {
  for (;;) {
    const int unsent = PQflush(connection_);
    if (unsent < 0) return broken(lost);
    if (unsent == 0 && PQisBusy(connection_) == 0) return {};
    const short events = static_cast<short>(POLLIN | (unsent > 0 ? POLLOUT : 0));
    if (!store::wait_for(PQsocket(connection_), events, by)) return late(lost);
    if (PQconsumeInput(connection_) == 0) return broken(lost);
  }
}

// The result of the last statement, or the first error.
Result<PostgresResult> PostgresConnection::collect(int sent, Deadline by, Lost lost) {
  if (sent == 0) return broken(lost);
  PostgresResult last;
  std::optional<Error> problem;
  for (;;) {
    if (auto ready = wait_for_answer(by, lost); !ready) return problem ? *problem : ready.error();
    PostgresResult next(PQgetResult(connection_));
    if (!next) break;
    switch (PQresultStatus(next.get())) {
      case PGRES_TUPLES_OK:
      case PGRES_COMMAND_OK:
      case PGRES_EMPTY_QUERY: break;
      case PGRES_COPY_IN:
      case PGRES_COPY_OUT:
      case PGRES_COPY_BOTH:
        usable_ = false;
        return Error{.code = Code::bad_request, .message = about("COPY is not supported here")};
      default:
        if (!problem) problem = refused(next.get(), lost);
    }
    last = std::move(next);
  }
  last_spoke_ = BootClock::now();
  if (problem) return *problem;
  return last;
}

PostgresConnection::Lost PostgresConnection::outside_transaction() const {
  return PQtransactionStatus(connection_) == PQTRANS_IDLE ? Lost::in_doubt : Lost::nothing_done;
}

// Only one request can be under way.
Result<void> PostgresConnection::ready(Deadline by) {
  if (!beating_) return {};
  beating_ = false;
  auto answer = collect(1, by, Lost::nothing_done);
  if (!answer) return answer.error();
  return {};
}

Result<PostgresResult> PostgresConnection::command(const std::string& sql, Deadline by, Lost lost) {
  if (auto free = ready(by); !free) return free.error();
  return collect(PQsendQuery(connection_, sql.c_str()), by, lost);
}

Result<Rows> PostgresConnection::run(const std::string& sql, const Values& values, Deadline by) {
  if (auto free = ready(by); !free) return free.error();
  const PostgresParameters parameters(values);
  const Lost lost = outside_transaction();
  auto result = collect(
      PQsendQueryParams(connection_, sql.c_str(), parameters.count(), parameters.types(),
                        parameters.pointers(), parameters.lengths(), parameters.formats(), 0),
      by, lost);
  if (!result) return result.error();
  return rows_of(std::move(*result));
}

Result<Rows> PostgresConnection::run(const Statement& statement, const Values& values,
                                     Deadline by) {
  if (auto free = ready(by); !free) return free.error();
  const PostgresParameters parameters(values);
  auto prepared = prepare(statement, parameters.count(), parameters.types(), by);
  if (!prepared) return prepared.error();
  const Lost lost = outside_transaction();
  auto result = collect(
      PQsendQueryPrepared(connection_, statement_name(statement).c_str(), parameters.count(),
                          parameters.pointers(), parameters.lengths(), parameters.formats(), 0),
      by, lost);
  if (!result) return result.error();
  return rows_of(std::move(*result));
}

Result<void> PostgresConnection::prepare(const Statement& statement, int parameters,
                                         const Oid* types, Deadline by) {
  if (prepared_.contains(statement.id())) return {};
  auto done = collect(PQsendPrepare(connection_, statement_name(statement).c_str(),
                                    statement.sql().c_str(), parameters, types),
                      by, Lost::nothing_done);
  if (!done) return done.error();
  prepared_.insert(statement.id());
  return {};
}

Result<void> PostgresConnection::run_script(const std::string& sql, Deadline by) {
  auto done = command(sql, by, outside_transaction());
  if (!done) return done.error();
  return {};
}

// A transaction that was lent has a setting of its own as a mark: one for later transactions, which
// ends with this one, and whose changes the server tells of itself.
Result<void> PostgresConnection::begin(Deadline by) {
  const bool mark = options_.lent && !options_.read_only;
  auto done = command(mark ? "BEGIN; SET LOCAL default_transaction_read_only = on" : "BEGIN", by,
                      Lost::nothing_done);
  if (!done) return done.error();
  marked_ = mark && has_mark();
  return {};
}

bool PostgresConnection::has_mark() const {
  const char* value = PQparameterStatus(connection_, "default_transaction_read_only");
  return value != nullptr && std::string_view(value) == "on";
}

// A failed transaction has lost its mark, and can only be rolled back, whose ever it is.
bool PostgresConnection::in_own_transaction() const {
  const auto status = PQtransactionStatus(connection_);
  return status != PQTRANS_IDLE && (!marked_ || status == PQTRANS_INERROR || has_mark());
}

Result<void> PostgresConnection::commit(Deadline by) {
  // If the session has ended before COMMIT is sent, nothing is in doubt.
  if (!still_there()) {
    return Error{.code = Code::unavailable,
                 .message = about("the server ended the session, and rolled back"),
                 .retryable = true};
  }
  // COMMIT outside of a transaction is answered with COMMIT.
  if (auto open = check_open(); !open) return open;
  auto done = command("COMMIT", by, Lost::in_doubt);
  if (!done) return done.error();
  if (std::string_view(PQcmdStatus(done->get())) == "COMMIT") return {};
  return Error{.code = Code::bad_request,
               .message = about("rolled back, because a statement in the transaction had failed")};
}

Result<void> PostgresConnection::rollback(Deadline by) {
  auto done = command("ROLLBACK", by, Lost::nothing_done);
  if (!done) return done.error();
  return {};
}

// Does the same as baton::fence, which has no deadline.
Result<void> PostgresConnection::fence(std::span<const FenceToken> tokens, Deadline by) {
  const auto ordered = core::in_fence_order(tokens);
  if (!ordered) return ordered.error();
  auto passed =
      run("SELECT public.baton_fence($1::pg_catalog.text)", {print_fence_tokens(*ordered)}, by);
  if (passed) return {};
  if (sqlstate_ == "42883" || sqlstate_ == "42P01" || sqlstate_ == "3F000") {
    passed.error().message += "; install the fence first: baton fence install";
  } else if (sqlstate_ == "42501") {
    passed.error().message +=
        "; the role that installed the fence can run: GRANT EXECUTE ON FUNCTION "
        "public.baton_fence(text), public.baton_fence(text, text, bigint) TO " +
        role() + ";";
  }
  return passed.error();
}

// As SQL writes it. The server cannot be asked: the transaction has failed by then.
std::string PostgresConnection::role() const {
  const std::string_view user = PQuser(connection_);
  const std::unique_ptr<char, decltype(&PQfreemem)> quoted(
      PQescapeIdentifier(connection_, user.data(), user.size()), &PQfreemem);
  return quoted ? quoted.get() : std::string(user);
}

bool PostgresConnection::still_there() {
  // A notice or a notification may have come; so may the end of the session, behind its last words.
  while (usable_) {
    pollfd idle{PQsocket(connection_), POLLIN, 0};
    if (idle.fd < 0) usable_ = false;  // nothing ever comes from there
    if (::poll(&idle, 1, 0) == 0) return true;
    if (PQconsumeInput(connection_) == 0 || PQstatus(connection_) != CONNECTION_OK) usable_ = false;
  }
  return false;
}

bool PostgresConnection::idle() const {
  return usable_ && PQtransactionStatus(connection_) == PQTRANS_IDLE;
}

Result<void> PostgresConnection::subscribe(const std::string& channel, Deadline by) {
  const std::unique_ptr<char, decltype(&PQfreemem)> quoted(
      PQescapeIdentifier(connection_, channel.data(), channel.size()), &PQfreemem);
  if (!quoted) {
    return Error{.code = Code::bad_request, .message = about("not a name of a channel")};
  }
  auto done = command("LISTEN " + std::string(quoted.get()), by, Lost::nothing_done);
  if (!done) return done.error();
  return {};
}

// The empty query. Its answer is read when it has come, so that nobody waits for it.
void PostgresConnection::beat() {
  if (beating_ && PQisBusy(connection_) == 0) {
    while (PGresult* result = PQgetResult(connection_)) PQclear(result);
    beating_ = false;
  }
  if (beating_ || BootClock::now() - last_spoke_ < options_.idle_session_timeout / 3) return;
  beating_ = PQsendQuery(connection_, "") == 1 && PQflush(connection_) >= 0;
  if (!beating_) usable_ = false;
  last_spoke_ = BootClock::now();
}

Result<std::vector<Notification>> PostgresConnection::receive(Deadline until) {
  const bool beats = options_.idle_session_timeout > Millis(0);
  std::vector<Notification> all;
  for (;;) {
    if (PQconsumeInput(connection_) == 0) return broken(Lost::nothing_done);
    if (beats) beat();
    while (PGnotify* notify = PQnotifies(connection_)) {
      all.push_back({notify->relname, notify->extra});
      PQfreemem(notify);
    }
    if (!usable_ || PQstatus(connection_) != CONNECTION_OK) return broken(Lost::nothing_done);
    if (!all.empty() || BootClock::now() >= until) return all;
    const Deadline next_beat = last_spoke_ + options_.idle_session_timeout / 3;
    (void)store::wait_for(PQsocket(connection_), POLLIN,
                          beats ? std::min<Deadline>(until, next_beat) : until);
  }
}

}  // namespace baton::sql
