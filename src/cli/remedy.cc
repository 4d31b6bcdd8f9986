#include "cli/remedy.h"

#include <algorithm>
#include <initializer_list>

#include "baton/locks.h"

namespace baton::cli {
namespace {

struct Remedy {
  std::initializer_list<std::string_view> when;  // the message has one of these in it
  std::string_view remedy;
};

const Remedy kRemedies[] = {
    {{"Connection refused", "Couldn't connect to server"},
     "start the server, or correct host and port in the URL"},
    {{"could not translate host name", "Name or service not known", "Could not resolve host",
      "Temporary failure in name resolution", "No address associated with hostname"},
     "correct the host in the URL, or its entry in the DNS"},
    {{"No route to host", "Network is unreachable"},
     "correct the host in the URL, or see to the network and its firewalls"},
    {{"password authentication failed", "WRONGPASS", "invalid username-password pair",
      "authentication failed, invalid user ID or password", "Login was refused"},
     "correct user and password in the URL, with %XX for special characters in them"},
    {{"no password supplied", "NOAUTH", "user name is empty"},
     "put user and password into the URL, or the password into ~/.pgpass for PostgreSQL"},
    {{"no pg_hba.conf entry"}, "let an administrator add this client to pg_hba.conf"},
    {{"read-only transaction"},
     "connect to a primary, or, if only the role is read-only, an administrator can run: ALTER "
     "ROLE … SET default_transaction_read_only = off;"},
};

// The last quoted name of: database "shop" does not exist.
std::string quoted_in(std::string_view message) {
  const auto end = message.rfind('"');
  if (end == std::string_view::npos || end == 0) return {};
  const auto begin = message.rfind('"', end - 1);
  return begin == std::string_view::npos ? std::string()
                                         : std::string(message.substr(begin + 1, end - begin - 1));
}

bool has(std::string_view message, std::string_view part) {
  return message.find(part) != std::string_view::npos;
}

// Of PostgreSQL, whose words these are.
std::string remedy_for_missing(std::string_view message) {
  if (!message.ends_with("does not exist") && !has(message, "does not exist (")) return {};
  if (has(message, "database \"")) {
    return "make it with: createdb " + quoted_in(message) + "; or name another in the URL";
  }
  if (has(message, "role \"")) {
    return "make it with: createuser " + quoted_in(message) + "; or name another in the URL";
  }
  return {};
}

}  // namespace

Error with_remedy(Error error) {
  if (error.code != Code::unavailable && error.code != Code::unauthorized &&
      error.code != Code::bad_store) {
    return error;
  }
  std::string remedy = remedy_for_missing(error.message);
  for (const Remedy& known : kRemedies) {
    if (!remedy.empty()) break;
    if (std::any_of(known.when.begin(), known.when.end(),
                    [&](std::string_view part) { return has(error.message, part); })) {
      remedy = known.remedy;
    }
  }
  // The text from libpq's question on says less than the remedy.
  if (const auto question = error.message.find(" Is the server running");
      !remedy.empty() && question != std::string::npos) {
    error.message.resize(question);
  }
  if (!remedy.empty() && !has(error.message, "ALTER ROLE")) error.message += "; " + remedy;
  return error;
}

Result<void> check_password(std::string_view url) {
  if (!has(url, ":***@") && !has(url, "password=***")) return {};
  return Error{.code = Code::bad_url,
               .message = "the password in " + redact_url(url) +
                          " is ***, which Baton shows in place of the real one: put the real one "
                          "there (one that is *** is written %2A%2A%2A)"};
}

}  // namespace baton::cli
