#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "baton/result.h"

namespace baton::cli {

// All of a file, or of standard input for "-", if it is no longer than `limit`.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit);

// The same of a file that only this user and root could have written: a regular one, no symbolic
// link, owned by one of the two, writable by nobody else. Nothing if there is none.
[[nodiscard]] Result<std::optional<std::string>> read_own_file(const std::filesystem::path& path,
                                                               std::size_t limit);

}  // namespace baton::cli
