#include "cli/process_tree.h"

#include <dirent.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace baton::cli {
namespace {

// Parent of each process that has not ended. Field 4 of stat, behind a name that may contain
// anything, also brackets.
std::multimap<pid_t, pid_t> children_of_all() {
  std::multimap<pid_t, pid_t> children;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return children;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream file("/proc/" + std::string(entry->d_name) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream rest(stat.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    if (rest >> state >> parent && state != 'Z' && state != 'X') children.emplace(parent, pid);
  }
  closedir(proc);
  return children;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root) {
  const auto children = children_of_all();
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto it = begin; it != end; ++it) found.push_back(it->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> children_of(pid_t parent) {
  const auto children = children_of_all();
  std::vector<pid_t> found;
  const auto [begin, end] = children.equal_range(parent);
  for (auto it = begin; it != end; ++it) found.push_back(it->second);
  return found;
}

Reached send_signal(const std::vector<pid_t>& processes, int number) {
  Reached reached;
  for (const pid_t pid : processes) {
    if (pid <= 0) continue;  // kill(2) takes it for a whole process group, our own among them
    if (kill(pid, number) == 0) {
      reached.anybody = true;
    } else if (errno == EPERM) {
      reached.refused.push_back(pid);
    }
  }
  return reached;
}

}  // namespace baton::cli
