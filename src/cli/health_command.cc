#include "cli/health_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fmt/core.h>

#include "cli/child.h"
#include "cli/supervisor.h"

namespace baton::cli {
namespace {

Error sick(std::string message) {
  return {.code = Code::unavailable, .message = std::move(message)};
}

// The process, or 0. It gets no signal mask of ours, and a group that can be killed as a whole.
pid_t spawn(const std::string& command) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, "/bin/sh", &files, &attributes, words.data(), environ) != 0) pid = 0;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return pid;
}

// Whether it ends before `until`, and before `stop` fires.
bool ends_in_time(int process, Instant until, const std::stop_token& stop) {
  const StopEvent stopped(stop);
  while (!stop.stop_requested() && BootClock::now() < until) {
    std::array<pollfd, 2> files{pollfd{process, POLLIN, 0}, pollfd{stopped.file(), POLLIN, 0}};
    const auto left = std::chrono::ceil<Millis>(until - BootClock::now()).count();
    if (poll(files.data(), files.size(), static_cast<int>(std::max<std::int64_t>(left, 0))) > 0 &&
        files[0].revents != 0) {
      return true;
    }
  }
  return false;
}

// Collects the processes that the check has left behind, because this process adopts the orphans
// below it. Does not wait for one that cannot be killed, as while a file server is away.
void reap_group(pid_t group) {
  constexpr Millis kPatience{100};
  const Instant until = BootClock::now() + kPatience;
  while (true) {
    const pid_t ended = waitpid(-group, nullptr, WNOHANG);
    if (ended > 0 || (ended < 0 && errno == EINTR)) continue;
    if (ended < 0 || BootClock::now() >= until) return;
    poll(nullptr, 0, 1);
  }
}

}  // namespace

Result<void> run_health_command(const std::string& command, Millis limit,
                                const std::stop_token& stop) {
  constexpr Millis kToBeKilled{1'000};
  const pid_t pid = spawn(command);
  if (pid == 0) return sick("the health command cannot be started");
  Child::spare(pid);
  // glibc 2.36 declares pidfd_open for C only.
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const bool ended = process >= 0 && ends_in_time(process, BootClock::now() + limit, stop);
  ::kill(-pid, SIGKILL);  // also what it has left in its group
  ::kill(pid, SIGKILL);   // if it has left that group itself
  pollfd file{process, POLLIN, 0};
  const bool gone = process >= 0 && poll(&file, 1, static_cast<int>(kToBeKilled.count())) > 0;
  if (process >= 0) close(process);
  int status = 0;
  const pid_t reaped = gone ? waitpid(pid, &status, 0) : 0;
  reap_group(pid);
  Child::spare(0);
  if (!gone) return sick("the health command cannot be ended");
  if (reaped != pid) return sick("how the health command ended is not known");
  if (!ended) {
    return sick(fmt::format("the health command took longer than {} ms", limit.count()));
  }
  if (WIFSIGNALED(status)) {
    return sick(fmt::format("the health command was ended by signal {}", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return sick(fmt::format("the health command ended with {}", WEXITSTATUS(status)));
  }
  return {};
}

}  // namespace baton::cli
