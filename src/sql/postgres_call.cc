#include "sql/postgres_call.h"

#include <set>

#include <libpq-events.h>

#include "core/bad_request.h"
#include "sql/postgres_error.h"
#include "sql/postgres_values.h"

namespace baton::sql {
namespace {

// The events are in UTF-8. A server that stores bytes as they come says SQL_ASCII.
Result<void> check_encoding(PGconn* connection) {
  const char* name = PQparameterStatus(connection, "client_encoding");
  const std::string_view encoding = name == nullptr ? "UTF8" : name;
  if (encoding == "UTF8" || encoding == "SQL_ASCII") return {};
  return bad_request("the client_encoding of the connection must be UTF8");
}

// Of a session, and gone with it: another one that libpq puts at the same address has none.
using Prepared = std::set<std::uint64_t>;

int on_event(PGEventId event, void* info, void* /*ours*/) {
  if (event == PGEVT_CONNDESTROY) {
    auto* connection = static_cast<PGEventConnDestroy*>(info)->conn;
    delete static_cast<Prepared*>(PQinstanceData(connection, on_event));
  } else if (event == PGEVT_CONNRESET) {
    auto* connection = static_cast<PGEventConnReset*>(info)->conn;
    if (void* found = PQinstanceData(connection, on_event)) static_cast<Prepared*>(found)->clear();
  }
  return 1;
}

// Null: there is no memory.
Prepared* prepared_on(PGconn* connection) {
  if (void* found = PQinstanceData(connection, on_event)) return static_cast<Prepared*>(found);
  auto made = std::make_unique<Prepared>();
  (void)PQregisterEventProc(connection, on_event, "baton statements", nullptr);
  if (PQsetInstanceData(connection, on_event, made.get()) == 0) return nullptr;
  return made.release();
}

}  // namespace

Result<PostgresCall::Answer> PostgresCall::answered(PGresult* raw) {
  Answer answer(raw);
  const auto status = PQresultStatus(raw);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return answer;
  const char* state = PQresultErrorField(raw, PG_DIAG_SQLSTATE);
  const char* primary = PQresultErrorField(raw, PG_DIAG_MESSAGE_PRIMARY);
  std::string message = readable(primary != nullptr ? primary : PQerrorMessage(connection_));
  const std::string_view code = state == nullptr ? "" : state;
  return explain_ ? explain_(code, std::move(message)) : postgres_error(code, std::move(message));
}

Result<PostgresCall::Answer> PostgresCall::execute(const std::string& sql) {
  return answered(PQexec(connection_, sql.c_str()));
}

Result<PostgresCall::Answer> PostgresCall::execute(const char* sql, const Values& values) {
  const PostgresParameters parameters(values);
  return answered(PQexecParams(connection_, sql, parameters.count(), parameters.types(),
                               parameters.pointers(), parameters.lengths(), parameters.formats(),
                               0));
}

// Gives its name, which is none of the session's own statements.
Result<std::string> PostgresCall::prepare(const Statement& statement, int parameters,
                                          const Oid* types) {
  Prepared* const prepared = prepared_on(connection_);
  if (prepared == nullptr) return bad_request("no session to prepare a statement on");
  std::string name = "call_" + std::to_string(statement.id());
  if (prepared->contains(statement.id())) return name;
  auto done =
      answered(PQprepare(connection_, name.c_str(), statement.sql().c_str(), parameters, types));
  if (!done) return done.error();
  prepared->insert(statement.id());
  return name;
}

Result<PostgresCall::Answer> PostgresCall::execute(const Statement& statement,
                                                   const Values& values) {
  const PostgresParameters parameters(values);
  auto name = prepare(statement, parameters.count(), parameters.types());
  if (!name) return name.error();
  return answered(PQexecPrepared(connection_, name->c_str(), parameters.count(),
                                 parameters.pointers(), parameters.lengths(), parameters.formats(),
                                 0));
}

Result<PostgresCall::Answer> PostgresCall::execute(const Statement& statement, const Oid* types,
                                                   const char* const* values, int count) {
  auto name = prepare(statement, count, types);
  if (!name) return name.error();
  return answered(PQexecPrepared(connection_, name->c_str(), count, values, nullptr, nullptr, 0));
}

Result<PostgresCall::Answer> PostgresCall::execute(const char* sql, const Oid* types,
                                                   const char* const* values, int count) {
  return answered(PQexecParams(connection_, sql, count, types, values, nullptr, nullptr, 0));
}

Result<void> PostgresCall::check_transaction() const {
  if (connection_ == nullptr) return bad_request("no connection was given");
  switch (PQtransactionStatus(connection_)) {
    case PQTRANS_INTRANS: break;
    case PQTRANS_IDLE:
      return bad_request("an event belongs into the transaction that makes it true: BEGIN first");
    case PQTRANS_INERROR: return bad_request("the transaction has failed before: roll it back");
    case PQTRANS_ACTIVE: return bad_request("the connection is busy with another statement");
    case PQTRANS_UNKNOWN:
      return Error{.code = Code::unavailable,
                   .message = "the connection is lost: " + readable(PQerrorMessage(connection_)),
                   .retryable = true};
  }
  if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) {
    return bad_request("the connection is in pipeline mode");
  }
  return check_encoding(connection_);
}

Error postgres_error(std::string_view sqlstate, std::string message, const Schema& schema) {
  if (sqlstate == "42883" || sqlstate == "42P01" || sqlstate == "3F000") {
    return not_installed(
        schema, "no " + std::string(schema.name) + " in the search path (" + message + ")");
  }
  return postgres_error(sqlstate, std::move(message));
}

}  // namespace baton::sql
