#include "cli/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace baton::cli {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

// 0, or what is wrong with it.
int judge_program(const std::string& path) {
  struct stat what {};
  if (stat(path.c_str(), &what) != 0) return errno == EACCES ? kNotExecutable : kNotFound;
  if (!S_ISREG(what.st_mode) || access(path.c_str(), X_OK) != 0) return kNotExecutable;
  return 0;
}

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

std::vector<pid_t> descendants() {
  const auto children = children_of_all();
  std::vector<pid_t> found{getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto it = begin; it != end; ++it) found.push_back(it->second);
  }
  found.erase(found.begin());
  return found;
}

Reached send(const std::vector<pid_t>& processes, int number) {
  Reached reached;
  for (const pid_t pid : processes) {
    if (kill(pid, number) == 0) {
      reached.anybody = true;
    } else if (errno == EPERM) {
      reached.refused.push_back(pid);
    }
  }
  return reached;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Our environment with `changes` (NAME=value) in the place of variables of the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> out = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const auto name = variable.substr(0, variable.find('=') + 1);
    bool replaced = false;
    for (const auto& change : changes) replaced = replaced || change.starts_with(name);
    if (!replaced) out.emplace_back(variable);
  }
  return out;
}

// Between fork and exec of a process with threads: nothing that may take a lock.
[[noreturn]] void become(const char* program, char* const* argv, char* const* environment,
                         const sigset_t& mask, pid_t parent, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotExecutable);  // we were orphaned before we asked
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvpe(program, argv, environment);
  const int problem = errno;
  (void)!write(errors, &problem, sizeof problem);
  _exit(problem == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace

Program find_program(const std::string& name) {
  if (name.empty()) return {.exit_code = kNotFound};
  if (name.find('/') != std::string::npos) return {name, judge_program(name)};
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/usr/bin:/bin" : path);
  int problem = kNotFound;
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    const int judged = judge_program(candidate);
    if (judged == 0) return {candidate, 0};
    if (judged == kNotExecutable) problem = kNotExecutable;
  }
  return {.exit_code = problem};
}

Result<Child> Child::start(const std::string& program, const std::vector<std::string>& command,
                           const std::vector<std::string>& environment, const sigset_t& mask,
                           int& exec_error) {
  const auto failed = [&](const char* what) {
    return Error{.code = Code::unavailable,
                 .message = std::string("cannot start ") + command.front() + ": " + what + ": " +
                            std::strerror(errno)};
  };
  exec_error = 0;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) return failed("pipe");
  const auto all = environment_with(environment);
  const auto argv = pointers_to(command);
  const auto envp = pointers_to(all);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(program.c_str(), argv.data(), envp.data(), mask, parent, errors[1]);
  close(errors[1]);
  if (pid < 0) {
    close(errors[0]);
    return failed("fork");
  }
  // Nothing comes if exec succeeded: the other end closes itself then.
  ssize_t got = 0;
  do {
    got = read(errors[0], &exec_error, sizeof exec_error);
  } while (got < 0 && errno == EINTR);
  close(errors[0]);
  if (got == sizeof exec_error) {
    waitpid(pid, nullptr, 0);
    errno = exec_error;
    return failed("exec");
  }
  exec_error = 0;
  return Child(pid);
}

std::optional<int> Child::reap() {
  int status = 0;
  pid_t pid = waitpid(-1, &status, WNOHANG);
  for (; pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    if (pid != pid_) continue;
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  // Orphans become our children, so as long as there are descendants some are those.
  any_left_ = pid == 0;
  return exit_code_;
}

Reached Child::signal(int number) const { return exit_code_ ? Reached{} : send({pid_}, number); }

Reached Child::signal_all(int number) const {
  auto all = descendants();
  // Also where /proc is missing, or hides the processes of other users.
  if (!exit_code_ && std::find(all.begin(), all.end(), pid_) == all.end()) {
    all.insert(all.begin(), pid_);
  }
  return send(all, number);
}

}  // namespace baton::cli
