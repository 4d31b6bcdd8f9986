#pragma once

#include <string>
#include <string_view>

#include "baton/result.h"

namespace baton::cli {

// The same error; if it says why the server could not be reached or used, with what to do about it
// behind it. The words are those of the client libraries: what they do not say in English stays
// without a remedy.
[[nodiscard]] Error with_remedy(Error error);

// Refuses a URL that was copied from output, where *** stands for its password.
[[nodiscard]] Result<void> check_password(std::string_view url);

}  // namespace baton::cli
