#include "inbox/session.h"

#ifdef BATON_HAS_STORE_POSTGRES
#include <libpq-fe.h>

#include "sql/postgres_error.h"
#endif
#ifdef BATON_HAS_STORE_SQLITE
#include <sqlite3.h>
#endif

namespace baton::inbox {
#ifdef BATON_HAS_STORE_POSTGRES
namespace {

// With the last words of the server, unless the last error was one of another kind.
SessionState lost(const PGconn* postgres) {
  SessionState state{.lost = true, .why = "the connection to the database is lost"};
  const std::string_view message = PQerrorMessage(postgres);
  const std::string words = sql::readable(message);
  if (!words.empty() && sql::postgres_error(sql::sqlstate_in(message), {}).retryable) {
    state.why += ": " + words;
  }
  return state;
}

}  // namespace
#endif

SessionState look_at(sql::Connection& session) {
  SessionState state;
#ifdef BATON_HAS_STORE_POSTGRES
  if (PGconn* postgres = session.postgres(); postgres != nullptr) {
    if (!session.still_there()) return lost(postgres);
    if (PQpipelineStatus(postgres) != PQ_PIPELINE_OFF) {
      state.why = "the handler left the connection in pipeline mode";
      return state;
    }
    switch (PQtransactionStatus(postgres)) {
      case PQTRANS_INTRANS:
        state.open = session.in_own_transaction();
        state.ended = !state.open;
        break;
      case PQTRANS_INERROR: {
        const std::string_view message = PQerrorMessage(postgres);
        state.sqlstate = sql::sqlstate_in(message);
        state.why = "a statement of the handler failed: " + sql::readable(message);
        return state;
      }
      case PQTRANS_IDLE: state.ended = true; break;
      case PQTRANS_ACTIVE: state.why = "the handler left a statement unfinished"; break;
      case PQTRANS_UNKNOWN: return lost(postgres);
    }
  }
#endif
#ifdef BATON_HAS_STORE_SQLITE
  if (sqlite3* sqlite = session.sqlite(); sqlite != nullptr) {
    state.open = session.in_own_transaction();
    state.ended = !state.open;
  }
#endif
  if (state.ended) state.why = kEndedTransaction;
  return state;
}

void prepare_for_handlers(sql::Connection& session) {
#ifdef BATON_HAS_STORE_POSTGRES
  if (session.postgres() != nullptr) PQsetErrorVerbosity(session.postgres(), PQERRORS_VERBOSE);
#endif
}

int socket_of(sql::Connection& session) {
#ifdef BATON_HAS_STORE_POSTGRES
  if (session.postgres() != nullptr) return PQsocket(session.postgres());
#endif
  return -1;
}

}  // namespace baton::inbox
