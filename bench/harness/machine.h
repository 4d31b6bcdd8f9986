#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace baton::bench {

[[nodiscard]] double process_cpu_seconds();

// Of other processes with one thread, their ids separated by commas.
[[nodiscard]] double cpu_seconds_of(const std::string& processes);

// Of all threads of another process, in steps of 10 ms.
[[nodiscard]] double cpu_seconds_of_process(pid_t process);

// Of a process, its children, and those of them that have ended.
[[nodiscard]] double cpu_seconds_of_family(pid_t parent);

// VmRSS of this process.
[[nodiscard]] double resident_megabytes();

// VmHWM of another process: the most that it ever had.
[[nodiscard]] double most_resident_megabytes(pid_t process);

// The type of the filesystem that holds the path: ext4, tmpfs, …
[[nodiscard]] std::string filesystem_of(const std::filesystem::path& path);

// Cores, memory, kernel and distribution, in a line.
[[nodiscard]] std::string describe_machine();

}  // namespace baton::bench
