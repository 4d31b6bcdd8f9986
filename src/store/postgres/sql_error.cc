#include "store/postgres/sql_error.h"

#include <algorithm>
#include <cctype>

namespace baton::store::postgres {
namespace {

bool is_state_char(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); }

bool one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

Error unavailable(std::string message) {
  return Error{.code = Code::unavailable, .message = std::move(message), .retryable = true};
}

// None of our statements exceeds a limit of the server, but its notification queue may be full.
constexpr std::string_view kTooMuch = "54000";

constexpr std::string_view kProxy =
    "this connection goes through a transaction-pooling proxy, which loses prepared statements and "
    "notifications: use the server's own address, or a pool in session mode";

}  // namespace

Error error_for(std::string_view state, std::string message, const Settings& settings) {
  const std::string_view kind = state.substr(0, 2);
  if (state == "42501") {
    return Error{.code = Code::unauthorized,
                 .message = message + "; 'baton store doctor --store " + settings.location +
                            "' shows the GRANT statements that the role needs"};
  }
  if (kind == "28") {
    return Error{.code = Code::unauthorized, .message = settings.location + ": " + message};
  }
  if (one_of(state, {"42P01", "42883", "3F000", "42704"})) {
    return Error{.code = Code::bad_store,
                 .message = message + "; run: " + migrate_command(settings)};
  }
  if (one_of(state, {"26000", "42P05"})) {
    return Error{.code = Code::bad_store, .message = std::string(kProxy)};
  }
  if (one_of(state, {"3D000", "XX001", "XX002"})) {
    return Error{.code = Code::bad_store, .message = settings.location + ": " + message};
  }
  // 0A000: a migration has changed the result type of a prepared statement.
  if (state.empty() || one_of(kind, {"08", "40", "53", "55", "57", "58", "XX"}) ||
      one_of(state, {"0A000", "25006", "25P03", kTooMuch})) {
    return unavailable(std::move(message));
  }
  return Error{.code = Code::bad_store, .message = message + " (" + std::string(state) + ")"};
}

bool is_bad_data(std::string_view state) {
  return one_of(state.substr(0, 2), {"21", "22", "23", "54"}) && state != kTooMuch;
}

bool is_conflict(std::string_view state) { return state.substr(0, 2) == "40"; }

bool is_locked_out(std::string_view state) { return state == "55P03"; }

std::string state_in(std::string_view message) {
  // "FATAL:  28P01: …", whatever language the words are in.
  for (std::size_t at = message.find(":  "); at != std::string_view::npos;
       at = message.find(":  ", at + 1)) {
    const std::string_view rest = message.substr(at + 3);
    if (rest.size() > 6 && rest[5] == ':' &&
        std::all_of(rest.begin(), rest.begin() + 5, is_state_char)) {
      return std::string(rest.substr(0, 5));
    }
  }
  return {};
}

std::string readable(std::string_view message) {
  if (const std::string state = state_in(message); !state.empty()) {
    const auto at = message.find(":  " + state + ": ");
    message = message.substr(at + state.size() + 5);
    message = message.substr(0, message.find('\n'));
  }
  std::string line;
  for (const char c : message) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (blank && (line.empty() || line.back() == ' ')) continue;
    line += blank ? ' ' : c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace baton::store::postgres
