#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <sys/stat.h>

#include "baton/result.h"

namespace baton::cli {

// Looks at a file that is open: nobody can put another one into its place any more.
using FileCheck = std::function<Result<void>(const struct stat&)>;

// All of a file, or of standard input for "-", if it is no longer than `limit`, and `check` has
// nothing against it.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit,
                                            const FileCheck& check = {});

// Why somebody but this user and root may have written it; empty if nobody can.
[[nodiscard]] std::string written_by_others(const struct stat& file);

// The same of a file that only this user and root could have written: a regular one, no symbolic
// link, owned by one of the two, writable by nobody else. Nothing if there is none.
[[nodiscard]] Result<std::optional<std::string>> read_own_file(const std::filesystem::path& path,
                                                               std::size_t limit);

}  // namespace baton::cli
