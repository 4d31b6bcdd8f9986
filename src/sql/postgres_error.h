#pragma once

#include <string>
#include <string_view>

#include "baton/result.h"

namespace baton::sql {

// What an SQLSTATE means to the caller. An empty one is a connection that failed or broke.
[[nodiscard]] BATON_EXPORT Error postgres_error(std::string_view sqlstate, std::string message);

// libpq tells the SQLSTATE of a connection that could not be made only in its verbose message,
// "FATAL:  28P01: …", whatever the language; empty if there is none.
[[nodiscard]] BATON_EXPORT std::string sqlstate_in(std::string_view message);

// Such a message for people: the first line, without severity and SQLSTATE.
[[nodiscard]] BATON_EXPORT std::string readable(std::string_view message);

}  // namespace baton::sql
