#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "baton/result.h"

namespace baton::store::sqlite {

// sqlite:PATH, sqlite:/PATH or sqlite:///PATH as an absolute path, with the symbolic links of its
// directory resolved. bad_url for anything else.
[[nodiscard]] BATON_EXPORT Result<std::string> path_of(std::string_view url);

// The file itself, if `path` is a symbolic link to it: what is kept beside the file must be in one
// place for all processes, whatever name they use. Only after prepare_file, which says whether the
// link may be followed.
[[nodiscard]] std::string without_links(const std::string& path);

// The name of a filesystem of this statfs type, if it may be shared with other machines, which
// neither the locks of SQLite nor its shared memory reach. Nothing for a local one.
[[nodiscard]] std::optional<std::string_view> network_filesystem(std::uint64_t type);

// Whether the directory of the file is there. One that is missing is more often mistyped, or not
// mounted, than wanted: locks in a new file there would be locks that nobody else sees.
[[nodiscard]] Result<void> check_directory(const std::string& path);

// Makes an empty file (0600, whatever the umask) if there is none yet; its directory must be there.
// Refuses network filesystems, links of other users and files with several hard links; `type`
// stands in for what the system says of this filesystem.
[[nodiscard]] BATON_EXPORT Result<void> prepare_file(const std::string& path,
                                                     std::optional<std::uint64_t> type = {});

}  // namespace baton::store::sqlite
