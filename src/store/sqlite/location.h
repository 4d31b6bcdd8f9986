#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "baton/result.h"

namespace baton::store::sqlite {

// sqlite:PATH, sqlite:/PATH or sqlite:///PATH as an absolute path. bad_url for anything else.
[[nodiscard]] Result<std::string> path_of(std::string_view url);

// What a filesystem of this statfs type is called if it may be shared with other machines, where
// neither the locks of SQLite nor its shared memory reach. Nothing for a local one.
[[nodiscard]] std::optional<std::string_view> network_filesystem(std::uint64_t type);

// Makes the directories (0700) and an empty file (0600) that are not there yet, whatever the umask.
// Refuses network filesystems; `type` stands in for what the system says of this one.
[[nodiscard]] Result<void> prepare_file(const std::string& path,
                                        std::optional<std::uint64_t> type = {});

}  // namespace baton::store::sqlite
