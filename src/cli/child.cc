#include "cli/child.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

#include "cli/cron/spawner.h"

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

Error cannot_start(const char* what, int problem) {
  return {
      .code = Code::unavailable,
      .message = std::string("cannot start the command: ") + what + ": " + std::strerror(problem)};
}

Error watcher_was_killed() {
  return {.code = Code::unavailable,
          .message = "cannot start the command: the process that watches over it was killed"};
}

// For the watcher, signals, the store with its connections and what they need now and then. Without
// them something would fail half-way, and not always with an error that says why.
constexpr std::size_t kDescriptorsNeeded = 16;

Result<void> check_descriptors() {
  std::vector<int> opened;
  int problem = 0;
  while (problem == 0 && opened.size() < kDescriptorsNeeded) {
    const int file = eventfd(0, EFD_CLOEXEC);
    if (file < 0) {
      problem = errno;
    } else {
      opened.push_back(file);
    }
  }
  for (const int file : opened) close(file);
  if (problem == 0) return {};
  if (problem != EMFILE) return cannot_start("eventfd", problem);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return Error{.code = Code::unavailable,
               .message = "cannot start the command: baton may have at most " +
                          std::to_string(limit.rlim_cur) + " files open (ulimit -n), and needs " +
                          std::to_string(kDescriptorsNeeded - opened.size()) +
                          " more; raise that limit"};
}

// Shared with the watcher, and never given back: both use it to their end.
Trust* share_trust() {
  void* place =
      mmap(nullptr, sizeof(Trust), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return place == MAP_FAILED ? nullptr : new (place) Trust;
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::atomic<pid_t> spared_group{0};

}  // namespace

Error ran_out_before_start() {
  return {.code = Code::lost, .message = "it ran out before the command was started"};
}

Program find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_program(name, path == nullptr ? "/usr/bin:/bin" : path);
}

Program find_program(const std::string& name, const std::string& path) {
  if (name.empty()) return {.exit_code = kNotFound};
  if (name.find('/') != std::string::npos) return {name, judge_program(name)};
  std::istringstream directories(path);
  int problem = kNotFound;
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    const int judged = judge_program(candidate);
    if (judged == 0) return {candidate, 0};
    if (judged == kNotExecutable) problem = kNotExecutable;
  }
  return {.exit_code = problem};
}

Result<std::unique_ptr<Child>> Child::prepare(WatchedCommand command) {
  if (auto enough = check_descriptors(); !enough) return enough.error();
  Trust* trust = share_trust();
  if (trust == nullptr) return cannot_start("mmap", errno);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cannot_start("socketpair", errno);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // in case that the watcher is killed
  const pid_t pid = fork();
  if (pid == 0) {
    // If it is stopped when we are killed, it goes on, and ends the command.
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    close(ends[0]);
    watch(ends[1], *trust, command);
  }
  const int problem = errno;
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return cannot_start("fork", problem);
  }
  return std::unique_ptr<Child>(new Child(pid, ends[0], *trust, true));
}

Result<std::unique_ptr<Child>> Child::prepare(Spawner& spawner, const WatchedCommand& command) {
  auto spawned = spawner.spawn(command);
  if (!spawned) return spawned.error();
  return std::unique_ptr<Child>(
      new Child(spawned->watcher, spawned->socket, *spawned->trust, false));
}

Child::~Child() {
  close(socket_);
  if (!is_ours_) {
    munmap(trust_, sizeof(Trust));
    return;
  }
  if (watcher_ == 0) return;
  // Our end is the end of the whole job: nothing of it keeps a pipe open any more.
  kill(watcher_, SIGCONT);
  while (waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Child::tell(Order order, const std::string& more) const {
  if (watcher_ == 0) return false;
  kill(watcher_, SIGCONT);  // if somebody has stopped it
  const std::string message = static_cast<char>(order) + more;
  return send(socket_, message.data(), message.size(), MSG_NOSIGNAL) >= 0;
}

// The later one first: the watcher may look in between.
void Child::trust_until(Instant end_at, Instant kill_at) {
  trust_->kill_at = kill_at.time_since_epoch().count();
  trust_->end_at = end_at.time_since_epoch().count();
  if (watcher_ != 0) kill(watcher_, SIGCONT);  // if somebody has stopped it
}

void Child::ends_by(Instant kill_at) {
  trust_->end_at = Trust::kNever;
  trust_->kill_at = kill_at.time_since_epoch().count();
  tell(Order::look);
}

Result<void> Child::start(const std::vector<std::string>& environment, int& exec_error) {
  exec_error = 0;
  std::string variables;
  for (const auto& variable : environment) variables += variable + '\0';
  if (!tell(Order::start, variables)) return watcher_was_killed();
  Report report{Event::none_left, 0};
  // Reports of the command before this one may still be on their way: skip them.
  while (report.event != Event::started) {
    pollfd answer{socket_, POLLIN, 0};
    if (poll(&answer, 1, 100) <= 0) {
      kill(watcher_, SIGCONT);  // if somebody has stopped it meanwhile
      continue;
    }
    const ssize_t got = recv(socket_, &report, sizeof report, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof report) return watcher_was_killed();
    if (report.event == Event::failed) return cannot_start("fork", report.value);
    if (report.event == Event::too_late) return ran_out_before_start();
    if (report.event == Event::not_started) {
      exec_error = report.value;
      return cannot_start("exec", report.value);
    }
  }
  pid_ = report.value;
  exit_code_.reset();
  any_left_ = true;
  return {};
}

std::optional<int> Child::reap() {
  Report report{};
  ssize_t got = 0;
  while (watcher_ != 0 &&
         (got = recv(socket_, &report, sizeof report, MSG_DONTWAIT)) == sizeof report) {
    if (report.event == Event::exited) {
      exit_code_ = report.value;
      tell(Order::collect);
    } else if (report.event == Event::none_left) {
      any_left_ = false;
    }
  }
  if (got >= 0 || (errno != EAGAIN && errno != EINTR)) watcher_ = 0;
  if (watcher_ == 0) reap_orphans();
  return exit_code_;
}

// The watcher was killed: what was below it is ours now.
void Child::reap_orphans() {
  if (!is_ours_) {
    // The kernel has killed the command, the spawner what it has started.
    any_left_ = false;
    if (!exit_code_) exit_code_ = 128 + SIGKILL;
    return;
  }
  int status = 0;
  pid_t pid = waitpid(-1, &status, WNOHANG);
  for (; pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    if (pid == pid_) exit_code_ = exit_code_of(status);
  }
  any_left_ = pid == 0;
  if (!any_left_ && !exit_code_) exit_code_ = 128 + SIGKILL;
}

Reached Child::signal(int number) const {
  return exit_code_ ? Reached{} : send_signal({pid_}, number);
}

Reached Child::signal_all(int number) const {
  // A watcher that is gone has nobody below it, and its process id may be another's.
  auto all = is_ours_ || watcher_ != 0 ? descendants_of(root_) : std::vector<pid_t>();
  std::erase(all, watcher_);
  if (const pid_t spared = spared_group; spared != 0) {
    std::erase_if(all, [&](pid_t pid) { return getpgid(pid) == spared; });
  }
  // Also where /proc is missing, or hides the processes of other users.
  if (!exit_code_ && std::find(all.begin(), all.end(), pid_) == all.end()) {
    all.insert(all.begin(), pid_);
  }
  return send_signal(all, number);
}

void Child::spare(pid_t group) { spared_group = group; }

void Child::let_go() { tell(Order::let_go); }

}  // namespace baton::cli
