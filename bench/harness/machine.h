#pragma once

#include <filesystem>
#include <string>

namespace baton::bench {

[[nodiscard]] double process_cpu_seconds();

// VmRSS of this process.
[[nodiscard]] double resident_megabytes();

// The type of the filesystem that holds the path: ext4, tmpfs, …
[[nodiscard]] std::string filesystem_of(const std::filesystem::path& path);

// Cores, memory, kernel and distribution, in a line.
[[nodiscard]] std::string describe_machine();

}  // namespace baton::bench
