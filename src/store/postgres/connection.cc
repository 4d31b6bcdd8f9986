#include "store/postgres/connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <poll.h>

#include "store/common/wait_for.h"
#include "store/postgres/sql_error.h"

namespace baton::store::postgres {
namespace {

// Skip the liveness check if the server answered within this time.
constexpr Millis kFresh{20};

Error too_late(const std::string& what, bool in_doubt) {
  return Error{.code = Code::unavailable, .message = what, .retryable = true, .in_doubt = in_doubt};
}

// Forces plans that go by key, in the order of the keys: a new table has no statistics to plan by.
std::string session_sql(const Settings& settings) {
  const auto set = [](const std::string& name, const std::string& value) {
    return "set_config('" + name + "', '" + value + "', false), ";
  };
  // Comes first, as a statement of its own, because SET itself looks up no names. From here on only
  // the server's own functions, operators and types are found, whatever search_path the role or the
  // database has.
  return "SET search_path = pg_catalog, pg_temp; SELECT " +
         set("statement_timeout", std::to_string(settings.statement_timeout().count())) +
         set("lock_timeout", std::to_string(settings.lock_timeout().count())) +
         set("idle_in_transaction_session_timeout", std::to_string(settings.apply_limit.count())) +
         set("default_transaction_isolation", "read committed") +
         set("default_transaction_deferrable", "off") + set("jit", "off") +
         set("plan_cache_mode", "force_generic_plan") + set("enable_hashjoin", "off") +
         set("enable_mergejoin", "off") + set("enable_seqscan", "off") +
         set("enable_bitmapscan", "off") + set("enable_material", "off") +
         set("bytea_output", "hex") +
         "CASE current_setting('synchronous_commit') WHEN 'off' THEN "
         "set_config('synchronous_commit', 'on', false) END";
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings, Deadline deadline) {
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  const std::string patience = std::to_string(settings.apply_limit.count());
  const auto add = [&](const char* keyword, const char* value) {
    keywords.push_back(keyword);
    values.push_back(value);
  };
  add("fallback_application_name", "baton");
  add("tcp_user_timeout", patience.c_str());  // an option in the URL overrides it
  for (const auto& [keyword, value] : settings.libpq) add(keyword.c_str(), value.c_str());
  add("client_encoding", "UTF8");
  add(nullptr, nullptr);
  PGconn* raw = PQconnectStartParams(keywords.data(), values.data(), 0);
  if (raw == nullptr) return Error{.message = "out of memory", .retryable = true};
  std::unique_ptr<Connection> connection(new Connection(raw, settings));
  if (auto connected = connection->connect(deadline); !connected) return connected.error();
  if (auto begun = connection->begin_session(deadline); !begun) return begun.error();
  return connection;
}

Connection::~Connection() { PQfinish(connection_); }

Result<void> Connection::connect(Deadline deadline) {
  // Verbose messages have the SQLSTATE; while connecting, libpq gives it in no other way.
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
    if (PQstatus(connection_) == CONNECTION_BAD) return broken();
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!wait_for(PQsocket(connection_), events, deadline)) {
      usable_ = false;
      return too_late("no connection to " + settings_.location + " in time", false);
    }
    next = PQconnectPoll(connection_);
    if (next == PGRES_POLLING_FAILED) return broken();
  }
  PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
  if (PQsetnonblocking(connection_, 1) != 0) return broken();
  return {};
}

Result<void> Connection::begin_session(Deadline deadline) {
  auto rows = script(session_sql(settings_), deadline);
  if (!rows) {
    rows.error().in_doubt = false;  // no request was sent yet
    return rows.error();
  }
  if (const char* encoding = PQparameterStatus(connection_, "server_encoding");
      encoding == nullptr || std::string_view(encoding) != "UTF8") {
    return Error{
        .code = Code::bad_store,
        .message = settings_.location +
                   ": the database's encoding is not UTF8, so it could not keep all names; "
                   "make another one with: createdb --encoding=UTF8 --template=template0"};
  }
  return {};
}

std::string Connection::last_words() const {
  const char* message = PQerrorMessage(connection_);
  std::string words = scrub(readable(message == nullptr ? "" : message), settings_);
  if (const char* password = PQpass(connection_); password != nullptr && *password != '\0') {
    Settings also;
    also.secrets.emplace_back(password);
    words = scrub(std::move(words), also);
  }
  return words.empty() ? "the connection has gone" : words;
}

Error Connection::broken() {
  usable_ = false;
  const char* message = PQerrorMessage(connection_);
  state_ = state_in(message == nullptr ? "" : message);
  return error_for(state_, last_words(), settings_);
}

Error Connection::refused(const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  state_ = state == nullptr ? "" : state;
  Error error = error_for(
      state_, message == nullptr ? last_words() : scrub(readable(message), settings_), settings_);
  // An ERROR has been rolled back. Anything worse ends the session, and may come after the commit.
  const bool fatal = severity == nullptr || std::string_view(severity) != "ERROR";
  if (fatal || PQstatus(connection_) == CONNECTION_BAD) {
    usable_ = false;
    error.in_doubt = true;
  }
  // The server became a standby, or the prepared statements are gone or out of date.
  if (state_ == "25006" || state_ == "26000" || state_ == "0A000") usable_ = false;
  return error;
}

Result<void> Connection::await(Deadline deadline) {
  for (;;) {
    const int unsent = PQflush(connection_);
    if (unsent < 0) return broken();
    if (unsent == 0 && PQisBusy(connection_) == 0) return {};
    const short events = static_cast<short>(POLLIN | (unsent > 0 ? POLLOUT : 0));
    if (!wait_for(PQsocket(connection_), events, deadline)) {
      usable_ = false;
      state_.clear();
      return too_late("no answer from " + settings_.location + " in time", true);
    }
    if (PQconsumeInput(connection_) == 0) return broken();
  }
}

Result<Rows> Connection::finish(Deadline deadline) {
  Rows rows;
  std::optional<Error> problem;
  for (;;) {
    if (auto ready = await(deadline); !ready) {
      ready.error().in_doubt = true;
      return problem ? *problem : ready.error();
    }
    PGresult* result = PQgetResult(connection_);
    if (result == nullptr) break;
    Rows next(result);
    const auto status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      rows = std::move(next);
    } else if (!problem) {
      problem = refused(result);
    }
  }
  last_answer_ = BootClock::now();
  if (problem) return *problem;
  return rows;
}

Result<void> Connection::prepare(const Statement& statement, Deadline deadline) {
  if (prepared_.test(statement.number)) return {};
  if (PQsendPrepare(connection_, statement.name, std::string(statement.sql).c_str(),
                    static_cast<int>(statement.types.size()), statement.types.data()) == 0) {
    return broken();
  }
  auto done = finish(deadline);
  if (!done) {
    done.error().in_doubt = false;  // it was not run yet
    return done.error();
  }
  prepared_.set(statement.number);
  return {};
}

Result<void> Connection::send(const Statement& statement, const Params& params, Deadline deadline) {
  if (auto done = prepare(statement, deadline); !done) return done;
  const auto values = params.values();
  const auto lengths = params.lengths();
  static const std::vector<int> binary(kMaxParameters, 1);
  if (PQsendQueryPrepared(connection_, statement.name, static_cast<int>(params.size()),
                          values.data(), lengths.data(), binary.data(), 1) == 0) {
    return broken();
  }
  return {};
}

Result<Rows> Connection::run(const Statement& statement, const Params& params, Deadline deadline) {
  if (auto sent = send(statement, params, deadline); !sent) return sent.error();
  return finish(deadline);
}

Result<void> Connection::send_script(const std::string& sql) {
  if (PQsendQuery(connection_, sql.c_str()) == 0) return broken();
  if (PQflush(connection_) < 0) return broken();
  return {};
}

std::optional<Result<Rows>> Connection::collect_now() {
  if (PQflush(connection_) < 0 || PQconsumeInput(connection_) == 0) {
    Error error = broken();
    error.in_doubt = true;
    return Result<Rows>(std::move(error));
  }
  while (PQisBusy(connection_) == 0) {
    PGresult* result = PQgetResult(connection_);
    if (result == nullptr) {
      last_answer_ = BootClock::now();
      Rows rows = std::exchange(polled_, Rows());
      if (const auto problem = std::exchange(polled_problem_, std::nullopt)) {
        return Result<Rows>(*problem);
      }
      return Result<Rows>(std::move(rows));
    }
    Rows next(result);
    const auto status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      polled_ = std::move(next);
    } else if (!polled_problem_) {
      polled_problem_ = refused(result);
    }
  }
  return std::nullopt;
}

Result<Rows> Connection::collect(Deadline deadline) {
  for (;;) {
    if (auto done = collect_now()) return std::move(*done);
    if (!wait_for(PQsocket(connection_), POLLIN, deadline)) {
      return too_late("no answer from " + settings_.location + " in time", true);
    }
  }
}

Result<Rows> Connection::script(const std::string& sql, Deadline deadline) {
  if (PQsendQuery(connection_, sql.c_str()) == 0) return broken();
  return finish(deadline);
}

Result<Rows> Connection::once(const std::string& sql, const std::vector<std::string>& params,
                              Deadline deadline) {
  std::vector<const char*> values;
  for (const auto& param : params) values.push_back(param.c_str());
  if (PQsendQueryParams(connection_, sql.c_str(), static_cast<int>(values.size()), nullptr,
                        values.data(), nullptr, nullptr, 0) == 0) {
    return broken();
  }
  return finish(deadline);
}

bool Connection::still_there() {
  if (usable_ && BootClock::now() - last_answer_ < kFresh) return true;
  // Input may be a notice, a notification, or a last message before the server closed.
  while (usable_) {
    pollfd idle{PQsocket(connection_), POLLIN, 0};
    if (poll(&idle, 1, 0) == 0) return true;
    if (PQconsumeInput(connection_) == 0 || PQstatus(connection_) != CONNECTION_OK) usable_ = false;
  }
  return false;
}

Result<bool> Connection::behind_transaction_pool(Deadline deadline) {
  const auto pid = [&](Connection& one) -> Result<std::string> {
    auto rows = one.script("SELECT pg_backend_pid()", deadline);
    if (!rows) return rows.error();
    return std::string(rows->text(0, 0));
  };
  auto own = pid(*this);
  if (!own) return own.error();
  // A proxy makes up the process id that a client gets when it connects.
  if (*own == std::to_string(PQbackendPID(connection_))) return false;
  auto second = open(settings_, deadline);
  if (!second) return second.error();
  // In session mode each of the two keeps a backend of its own.
  for (int round = 0; round < 8; ++round) {
    auto other = pid(**second);
    if (!other) return other.error();
    auto again = pid(*this);
    if (!again) return again.error();
    if (*other == *own || *again != *own) return true;
  }
  return false;
}

Connection::Line Connection::line() const {
  const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
  Line line{.host = text(PQhost(connection_))};
  line.has_password = !text(PQpass(connection_)).empty();
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfo(connection_), &PQconninfoFree);
  for (auto* option = options.get(); option != nullptr && option->keyword != nullptr; ++option) {
    if (std::string_view(option->keyword) == "sslmode") line.sslmode = text(option->val);
  }
  return line;
}

int Connection::socket() const { return PQsocket(connection_); }

bool Connection::receive(std::vector<Notification>& notifications) {
  if (PQconsumeInput(connection_) == 0) usable_ = false;
  while (PGnotify* note = PQnotifies(connection_)) {
    notifications.push_back({note->relname, note->extra});
    PQfreemem(note);
  }
  if (PQstatus(connection_) != CONNECTION_OK) usable_ = false;
  return usable_;
}

void Connection::cancel() {
  if (PGcancel* handle = PQgetCancel(connection_)) {
    char ignored[256];
    PQcancel(handle, ignored, sizeof ignored);
    PQfreeCancel(handle);
  }
}

}  // namespace baton::store::postgres
