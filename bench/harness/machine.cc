#include "harness/machine.h"

#include <time.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace baton::bench {
namespace {

// The rest of the line that starts with this word.
std::string line_of(const char* file, const std::string& start) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(start)) return line.substr(start.size());
  }
  return {};
}

bool is_below(const std::string& path, const std::string& mount) {
  return mount == "/" || path == mount || path.starts_with(mount + "/");
}

}  // namespace

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double resident_megabytes() {
  return std::atof(line_of("/proc/self/status", "VmRSS:").c_str()) / 1024;
}

std::string filesystem_of(const std::filesystem::path& path) {
  const std::string place = std::filesystem::canonical(path);
  std::ifstream mounts("/proc/self/mounts");
  std::string best;
  std::string type = "unknown";
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device;
    std::string mount;
    std::string kind;
    words >> device >> mount >> kind;
    if (!is_below(place, mount) || mount.size() < best.size()) continue;
    best = mount;
    type = kind;
  }
  return type;
}

std::string describe_machine() {
  std::string system = line_of("/etc/os-release", "PRETTY_NAME=");
  std::erase(system, '"');
  const double memory = std::atof(line_of("/proc/meminfo", "MemTotal:").c_str()) / (1 << 20);
  return std::to_string(std::thread::hardware_concurrency()) + " cores, " +
         std::to_string(static_cast<int>(memory + 0.5)) + " GiB, " + system;
}

}  // namespace baton::bench
