#pragma once

// The session that a handler gets, and what it has left of it. Part of it is libpq's and SQLite's.

#include <string>
#include <string_view>

#include "sql/connection.h"

namespace baton::inbox {

inline constexpr const char* kEndedTransaction =
    "the handler ended the transaction of the consumer";

struct SessionState {
  bool open = false;     // in the transaction, which can be committed
  bool lost = false;     // the server is gone
  bool ended = false;    // the handler has committed or rolled back
  std::string sqlstate;  // of the last error of a transaction that has failed
  std::string why;       // for people, if it is not open
};

// Of PostgreSQL: the same may succeed at once.
[[nodiscard]] inline bool is_conflict(std::string_view sqlstate) {
  return sqlstate == "40001" || sqlstate == "40P01";
}

[[nodiscard]] SessionState look_at(sql::Connection& session);

// Errors of PostgreSQL are to be told with their SQLSTATE from now on.
void prepare_for_handlers(sql::Connection& session);

// Which socket to shut down if a handler must be stopped; -1: SQLite. From any thread.
[[nodiscard]] int socket_of(sql::Connection& session);

}  // namespace baton::inbox
