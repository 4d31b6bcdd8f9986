#pragma once

#include <string>
#include <string_view>

#include "baton/result.h"
#include "store/postgres/settings.h"

namespace baton::store::postgres {

// What an SQLSTATE means to a caller of Baton. An empty state is a connection that failed or broke.
[[nodiscard]] Error error_for(std::string_view sqlstate, std::string message,
                              const Settings& settings);

// The request's own data is at fault: it will never succeed, and others will.
[[nodiscard]] bool is_bad_data(std::string_view sqlstate);

// The server rolled it back because of another session, not because of what was asked.
[[nodiscard]] bool is_conflict(std::string_view sqlstate);

// The statement waited too long for a row that another session has locked.
[[nodiscard]] bool is_locked_out(std::string_view sqlstate);

// The SQLSTATE in what libpq says about a connection that could not be made (verbose messages), or
// nothing; and that text for people, in one line.
[[nodiscard]] std::string state_in(std::string_view message);
[[nodiscard]] std::string readable(std::string_view message);

}  // namespace baton::store::postgres
