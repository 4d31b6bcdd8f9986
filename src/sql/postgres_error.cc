#include "sql/postgres_error.h"

#include <algorithm>

namespace baton::sql {
namespace {

bool one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

// Where "SSSSS: " starts in a verbose message.
std::size_t find_sqlstate(std::string_view message) {
  const auto is_state_char = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
  };
  for (auto at = message.find(":  "); at != message.npos; at = message.find(":  ", at + 1)) {
    const std::string_view rest = message.substr(at + 3);
    if (rest.size() > 6 && rest[5] == ':' &&
        std::all_of(rest.begin(), rest.begin() + 5, is_state_char)) {
      return at + 3;
    }
  }
  return message.npos;
}

}  // namespace

Error postgres_error(std::string_view state, std::string message) {
  const std::string_view kind = state.substr(0, 2);
  // Raised by the SQL function baton_fence.
  if (state == "BT001") return {.code = Code::fenced, .message = std::move(message)};
  if (kind == "28" || state == "42501") {
    return {.code = Code::unauthorized, .message = std::move(message)};
  }
  // The connection, a conflict with another session, too few resources, a lock that is taken, an
  // operator or a timeout, the disk; a server that became a standby; an idle session. 0A000: the
  // result of a prepared statement has changed, and a new session prepares it anew.
  if (state.empty() || one_of(kind, {"08", "40", "53", "55", "57", "58"}) ||
      one_of(state, {"25006", "25P03", "0A000"})) {
    return {.code = Code::unavailable, .message = std::move(message), .retryable = true};
  }
  message += " (" + std::string(state) + ")";
  // The values are at fault: out of range, malformed, against a constraint.
  if (one_of(kind, {"21", "22", "23"})) {
    return {.code = Code::bad_request, .message = std::move(message)};
  }
  return {.code = Code::bad_store, .message = std::move(message)};
}

std::string sqlstate_in(std::string_view message) {
  const auto at = find_sqlstate(message);
  return at == message.npos ? std::string() : std::string(message.substr(at, 5));
}

std::string readable(std::string_view message) {
  if (const auto at = find_sqlstate(message); at != message.npos) message.remove_prefix(at + 7);
  message = message.substr(0, message.find('\n'));
  return std::string(message);
}

}  // namespace baton::sql
