#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "baton/result.h"

namespace baton::cli {

// All of a file, or of standard input for "-", if it is no longer than `limit`.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit);

}  // namespace baton::cli
