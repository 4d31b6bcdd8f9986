#pragma once

// How `run` and `hold` ask for a lock, and what they say if they do not get it.

#include <optional>
#include <vector>

#include "baton/locks.h"
#include "cli/commands.h"

namespace baton::cli {

// `of_name` is the mode that the name was given with, if any; --mode stands above it.
[[nodiscard]] Result<AcquireOptions> lock_options(const LockArguments& arguments,
                                                  std::optional<Mode> of_name);

// Asks the store once more who holds the names, because "timed out" alone tells the user nothing to
// do.
[[nodiscard]] Error explain_timeout(LockClient& locks, const std::vector<LockName>& names,
                                    Millis wait, Error error);

}  // namespace baton::cli
