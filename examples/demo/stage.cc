#include "stage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace demo {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Stage::Stage(std::function<std::string()> picture)
    : picture_(std::move(picture)), terminal_(isatty(STDOUT_FILENO) == 1) {
  actors_.reserve(16);  // references to them stay good
}

Stage::~Stage() { stop_all(); }

pid_t Stage::start(const std::vector<std::string>& words, const std::string& log) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (!log.empty()) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

Actor& Stage::enter(std::string name, const std::vector<std::string>& words,
                    const std::string& log) {
  return actors_.emplace_back(Actor{.name = std::move(name), .pid = start(words, log)});
}

void Stage::kill(Actor& actor) {
  if (actor.pid <= 0) return;
  ::kill(actor.pid, SIGKILL);
  ::kill(actor.pid, SIGCONT);
  waitpid(actor.pid, nullptr, 0);
  actor.pid = 0;
  actor.state = "killed";
}

void Stage::stop_all() {
  for (Actor& actor : actors_) kill(actor);
}

std::string Stage::stamped(const std::string& what) const {
  const auto seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  std::array<char, 32> stamp{};
  std::snprintf(stamp.data(), stamp.size(), "%5.1f s  ", seconds);
  return stamp.data() + what;
}

void Stage::say(const std::string& what) {
  events_.push_back(stamped(what));
  if (!terminal_) std::printf("%s\n", events_.back().c_str());
  std::fflush(stdout);
}

void Stage::tell(const std::string& what) {
  if (terminal_) return;
  std::printf("%s\n", stamped(what).c_str());
  std::fflush(stdout);
}

std::size_t Stage::room_for_events() const {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  const std::size_t rows = known ? size.ws_row : 24;
  const std::size_t others = picture_lines_ + 2;  // an empty line, and that of the cursor
  return rows > others + 1 ? rows - others : 1;
}

void Stage::draw(std::size_t most_events) {
  std::string text = picture_() + "\n";
  if (!terminal_) return;
  picture_lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 1;
  const std::size_t shown = std::min(most_events, events_.size());
  for (std::size_t i = events_.size() - shown; i < events_.size(); ++i) {
    text += "  " + events_[i] + "\n";
  }
  std::string out = "\033[?7l";  // a line that wraps would not be drawn over
  if (drawn_ > 0) out += "\033[" + std::to_string(drawn_) + "A";
  for (const char c : text) out += c == '\n' ? "\033[K\n" : std::string(1, c);
  out += "\033[J\033[?7h";
  drawn_ = picture_lines_ + 1 + shown;
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

bool Stage::wait_until(const std::function<bool()>& condition) {
  const auto give_up = Clock::now() + 120s;
  while (!condition()) {
    if (Clock::now() > give_up) return false;
    draw();
    std::this_thread::sleep_for(100ms);
  }
  return true;
}

bool Stage::check(bool ok, const std::string& what) {
  std::printf("  %s %s\n", ok ? "ok  " : "FAIL", what.c_str());
  failed_ = failed_ || !ok;
  return ok;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

namespace {

struct Outcome {
  int code = 0;
  int signal = 0;  // that ended it
};

// In a process of its own, so that something is left to clean up behind a body that is ended by
// Ctrl-C. Returns when all that it has started has ended, too.
Outcome in_child(const std::function<int()>& body) {
  sigset_t waited_for;
  sigemptyset(&waited_for);
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&waited_for, one);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &waited_for, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    int code = 1;
    try {
      code = body();
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "%s\n", problem.what());
    }
    std::fflush(nullptr);
    _exit(code);
  }
  Outcome outcome;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0) break;
    if (ended == child) {
      outcome = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                 .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    }
    if (ended > 0) continue;
    int signal = 0;
    sigwait(&waited_for, &signal);
    if (signal != SIGCHLD) kill(child, signal);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return outcome;
}

}  // namespace

int with_directory(const std::function<int(const std::string&)>& body, Afterwards afterwards) {
  std::string directory = std::filesystem::temp_directory_path() / "baton-demo-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no temporary directory");
  const Outcome outcome = in_child([&] { return body(directory); });
  std::error_code ignored;
  if (afterwards == Afterwards::remove || outcome.signal != 0) {
    std::filesystem::remove_all(directory, ignored);
  }
  if (outcome.signal == 0) return outcome.code;
  signal(outcome.signal, SIG_DFL);
  raise(outcome.signal);
  return 128 + outcome.signal;
}

}  // namespace demo
