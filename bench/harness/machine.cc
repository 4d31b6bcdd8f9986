#include "harness/machine.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
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

struct Stat {
  pid_t parent = 0;
  double own = 0;          // seconds
  double of_children = 0;  // that have ended
};

Stat stat_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);  // nothing if the process has ended
  // Behind the name, which may have blanks: the state, the parent, 9 fields, then the ticks in user
  // and kernel mode.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  Stat stat;
  std::string other;
  fields >> other >> stat.parent;
  for (int i = 0; i < 9; ++i) fields >> other;
  double user = 0, system = 0, user_of_children = 0, system_of_children = 0;
  fields >> user >> system >> user_of_children >> system_of_children;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  stat.own = (user + system) / ticks;
  stat.of_children = (user_of_children + system_of_children) / ticks;
  return stat;
}

}  // namespace

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double cpu_seconds_of(const std::string& processes) {
  double nanoseconds = 0;
  std::istringstream ids(processes);
  for (std::string id; std::getline(ids, id, ',');) {
    double time = 0;
    std::ifstream("/proc/" + id + "/schedstat") >> time;
    nanoseconds += time;
  }
  return nanoseconds * 1e-9;
}

double cpu_seconds_of_process(pid_t process) { return stat_of(process).own; }

double cpu_seconds_of_family(pid_t parent) {
  const Stat first = stat_of(parent);
  double all = first.own + first.of_children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Stat child = stat_of(static_cast<pid_t>(std::stol(name)));
    if (child.parent == parent) all += child.own;
  }
  return all;
}

double resident_megabytes() {
  return std::atof(line_of("/proc/self/status", "VmRSS:").c_str()) / 1024;
}

double most_resident_megabytes(pid_t process) {
  const std::string file = "/proc/" + std::to_string(process) + "/status";
  return std::atof(line_of(file.c_str(), "VmHWM:").c_str()) / 1024;
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
