#include "cli/watcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>

#include "baton/locks.h"
#include "cli/process_tree.h"

namespace baton::cli {
namespace {

// Between two rounds of SIGKILL: what is forked meanwhile is found by the next one.
constexpr int kKillEveryMs = 10;

// In the place of errno of exec.
constexpr int kTooLate = -1;

// After this long without success, what is left may not be signalled, and is left alone.
constexpr Millis kGiveUpAfter{1'000};

Instant instant(const std::atomic<std::int64_t>& shared) {
  return Instant(std::chrono::nanoseconds(shared.load()));
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Our environment with `changes` (NAME=value) in the place of variables of the same name, and
// BATON_STORE as store_variable() has it. It is not left out: a baton that the command calls would
// then quietly lock in another store.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> out = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const auto name = variable.substr(0, variable.find('=') + 1);
    bool replaced = false;
    for (const auto& change : changes) replaced = replaced || change.starts_with(name);
    if (replaced) continue;
    out.push_back(name == "BATON_STORE=" ? store_variable(variable) : std::string(variable));
  }
  return out;
}

std::vector<std::string> split_at_zeros(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\0'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

class Watch {
 public:
  Watch(int socket, Trust& trust, const WatchedCommand& command)
      : socket_(socket), trust_(trust), command_(command) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_before_);
    // A parent may have left it ignored, and then nobody would learn that a child has ended.
    std::signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "baton-watcher");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    children_ = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    // By the boot clock, so that it also goes off at once after a suspend.
    timer_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    // And one that also goes off in a stopped process, and continues it.
    sigevent go_on{};
    go_on.sigev_notify = SIGEV_SIGNAL;
    go_on.sigev_signo = SIGCONT;
    can_go_on_ = timer_create(CLOCK_BOOTTIME, &go_on, &go_on_) == 0;
  }

  [[noreturn]] void run() {
    if (children_ < 0 || timer_ < 0) _exit(1);
    while (true) {
      collect();
      end_if_due();
      if (orphaned_ && !watching_) _exit(0);
      wait();
    }
  }

 private:
  void wait() {
    set_timer();
    std::array<pollfd, 3> files{pollfd{orphaned_ ? -1 : socket_, POLLIN, 0},
                                pollfd{children_, POLLIN, 0}, pollfd{timer_, POLLIN, 0}};
    const bool killing = watching_ && ending_ && BootClock::now() >= kill_at_;
    poll(files.data(), files.size(), killing ? kKillEveryMs : -1);
    signalfd_siginfo signal{};
    while (read(children_, &signal, sizeof signal) > 0) {
    }
    std::uint64_t expired = 0;
    (void)!read(timer_, &expired, sizeof expired);
    if (files[0].revents != 0) obey();
  }

  // The next moment at which something is due. baton moves it on without a word when it renews: the
  // timer then goes off too early, and is set again.
  void set_timer() const {
    std::int64_t at = Trust::kNever;
    if (watching_) {
      at = ending_ ? kill_at_.time_since_epoch().count()
                   : std::min(trust_.end_at.load(), trust_.kill_at.load());
    }
    itimerspec when{};
    if (at != Trust::kNever) {
      at = std::max<std::int64_t>(at, 1);
      when.it_value = {at / 1'000'000'000, at % 1'000'000'000};
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
    if (can_go_on_) timer_settime(go_on_, TIMER_ABSTIME, &when, nullptr);
  }

  void obey() {
    while (true) {
      const ssize_t size = recv(socket_, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) {
        orphaned_ = true;
        return;
      }
      std::string message(static_cast<std::size_t>(size), '\0');
      if (recv(socket_, message.data(), message.size(), 0) != size) continue;
      switch (static_cast<Order>(message.front())) {
        case Order::start: start(split_at_zeros(std::string_view(message).substr(1))); break;
        case Order::collect: may_collect_ = true; break;
        case Order::look: break;
        case Order::let_go: watching_ = false; break;
      }
    }
  }

  void report(Event event, int value = 0) const {
    const Report report{event, value};
    (void)!send(socket_, &report, sizeof report, MSG_NOSIGNAL);
  }

  void start(const std::vector<std::string>& environment) {
    int errors[2];
    if (pipe2(errors, O_CLOEXEC) != 0) return report(Event::failed, errno);
    const auto all = command_.apart ? environment : environment_with(environment);
    const auto argv = pointers_to(command_.command);
    const auto envp = pointers_to(all);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become(argv.data(), envp.data(), parent, errors[1]);
    const int fork_error = errno;
    close(errors[1]);
    if (command_.apart) {
      close(command_.out);
      close(command_.errors);
    }
    int exec_error = 0;
    // Nothing comes if exec succeeded: the other end closes itself then.
    const bool failed = pid > 0 && read(errors[0], &exec_error, sizeof exec_error) > 0;
    close(errors[0]);
    if (pid < 0) return report(Event::failed, fork_error);
    if (failed) {
      waitpid(pid, nullptr, 0);
      if (exec_error == kTooLate) return report(Event::too_late);
      return report(Event::not_started, exec_error);
    }
    pid_ = pid;
    watching_ = true;
    ending_ = may_collect_ = reported_ = told_none_left_ = false;
    trust_.ended = false;
    report(Event::started, pid);
  }

  [[noreturn]] void become(char* const* argv, char* const* environment, pid_t parent, int errors) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);  // we were orphaned before we asked
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    // The last moment at which a command that comes too late can be held back.
    const Instant now = BootClock::now();
    if (now >= instant(trust_.end_at) || now >= instant(trust_.kill_at)) {
      (void)!write(errors, &kTooLate, sizeof kTooLate);
      _exit(126);
    }
    if (!command_.apart || stand_apart()) {
      execvpe(command_.program.c_str(), argv, environment);
    }
    const int problem = errno;
    (void)!write(errors, &problem, sizeof problem);
    _exit(126);
  }

  // False with errno.
  bool stand_apart() const {
    setsid();
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, 0) < 0) return false;
    if (dup2(command_.out, 1) < 0 || dup2(command_.errors, 2) < 0) return false;
    return command_.directory.empty() || chdir(command_.directory.c_str()) == 0;
  }

  // Collects all that have ended, but the command only when baton knows of its end: until then
  // baton may signal its process id, which must not be another process by then.
  void collect() {
    siginfo_t ended{};
    int outcome = waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
    for (; outcome == 0 && ended.si_pid != 0;
         outcome = waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT)) {
      if (ended.si_pid == pid_) {
        if (!reported_) {
          report(Event::exited,
                 ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status);
        }
        reported_ = true;
        if (!may_collect_ && !orphaned_) return;
        pid_ = 0;
      }
      waitpid(ended.si_pid, nullptr, 0);
      ended.si_pid = 0;
    }
    // Orphans become our children, so as long as there are descendants some are those.
    if (outcome == 0 || errno != ECHILD || pid_ != 0) return;
    if (!told_none_left_) report(Event::none_left);
    told_none_left_ = true;
    if (ending_ || orphaned_) watching_ = false;
  }

  void end_if_due() {
    if (!watching_) return;
    const Instant now = BootClock::now();
    if (!ending_) {
      const bool late = now >= instant(trust_.end_at);
      if (!orphaned_ && !late && now < instant(trust_.kill_at)) return;
      ending_ = true;
      kill_at_ = instant(trust_.kill_at);
      if (orphaned_) kill_at_ = std::min(kill_at_, now + std::min<Millis>(command_.grace, kMaxTtl));
      if (!orphaned_) trust_.ended = true;
      if (now < kill_at_) {
        send_signal(all(), SIGTERM);
        send_signal(all(), SIGCONT);  // a stopped process would not hear of it
      }
    }
    if (now < kill_at_) return;
    const auto left = all();
    const Reached reached = send_signal(left, SIGKILL);
    if (left.empty() || (!reached.anybody && now >= kill_at_ + kGiveUpAfter)) watching_ = false;
  }

  [[nodiscard]] std::vector<pid_t> all() const {
    auto found = descendants_of(getpid());
    // Also where /proc is missing, or hides the processes of other users.
    if (pid_ != 0 && !reported_ && std::find(found.begin(), found.end(), pid_) == found.end()) {
      found.insert(found.begin(), pid_);
    }
    return found;
  }

  const int socket_;
  Trust& trust_;
  const WatchedCommand& command_;
  sigset_t mask_before_{};
  int children_ = -1;
  int timer_ = -1;
  timer_t go_on_{};
  bool can_go_on_ = false;
  pid_t pid_ = 0;
  bool orphaned_ = false;  // baton is dead
  bool watching_ = false;  // there is something that we would have to end
  bool ending_ = false;
  bool reported_ = false;
  bool may_collect_ = false;
  bool told_none_left_ = true;
  Instant kill_at_{};
};

}  // namespace

std::string store_variable(std::string_view variable) {
  constexpr std::string_view kRelative = "BATON_STORE=sqlite:";
  std::error_code failed;
  if (variable.starts_with(kRelative) && variable.size() > kRelative.size() &&
      variable[kRelative.size()] != '/' && variable[kRelative.size()] != ':') {
    const auto path = std::filesystem::absolute(variable.substr(kRelative.size()), failed);
    if (!failed) return std::string(kRelative) + path.string();
  }
  return redact_url(variable);
}

void watch(int socket, Trust& trust, const WatchedCommand& command) {
  Watch(socket, trust, command).run();
}

}  // namespace baton::cli
