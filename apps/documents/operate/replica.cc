#include "apps/documents/operate/replica.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "apps/common/start.h"

namespace baton::documents {
namespace {

constexpr Millis kFirstPause{200};
constexpr Millis kLongestPause{5'000};
constexpr std::streamoff kMostOfLog = 64 << 10;  // bytes that are read for the reason of an end
constexpr Millis kLongEnough{10'000};  // a process that ran for so long did not fail to start

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

char process_state(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');  // the name may have anything in it
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

// A service writes its log as JSON, and last, if it cannot go on, why: "documents: …".
std::string Replica::describe_end(int status) const {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  std::ifstream file(how_.log_file);
  file.seekg(0, std::ios::end);
  const auto end = static_cast<std::streamoff>(file.tellg());
  file.seekg(std::max(log_began_, end - kMostOfLog));
  constexpr std::string_view kOwn = "documents: ";
  std::string why;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kOwn)) why = ": " + line.substr(kOwn.size());
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status)) + why;
}

bool Replica::tend(Instant now) {
  bool ended = false;
  int status = 0;
  if (pid_ != 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = 0;
    ended = true;
    last_end_ = describe_end(status);
    misconfigured_ = restarts_ == 0 && WIFEXITED(status) && WEXITSTATUS(status) == apps::kUsage;
    const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == apps::kError;
    refusals_ = refused && now - started_ <= kLongEnough ? refusals_ + 1 : 0;
    quick_ends_ = now - started_ > kLongEnough ? 0 : std::min(quick_ends_ + 1, 10);
    const Millis pause = quick_ends_ == 0 ? Millis(0) : kFirstPause * (1 << (quick_ends_ - 1));
    not_before_ = now + std::min(pause, kLongestPause);
  }
  if (pid_ == 0 && !retired_ && !given_up() && now >= not_before_) start(now);
  return ended;
}

// Called while this process has one thread, and from the thread that lives as long as it does:
// otherwise the child would be killed when that thread ends.
void Replica::start(Instant now) {
  ::unlink(how_.run_file.c_str());
  std::error_code none_yet;
  const auto log_length =
      static_cast<std::streamoff>(std::filesystem::file_size(how_.log_file, none_yet));
  std::vector<std::string> arguments = how_.arguments;
  const auto argv = pointers(arguments);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int log = ::open(how_.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log < 0 || null < 0 || ::dup2(null, 0) < 0 || ::dup2(log, 1) < 0 || ::dup2(log, 2) < 0) {
      ::_exit(1);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (std::string& variable : how_.environment) ::putenv(variable.data());
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  if (child < 0) {
    not_before_ = now + kLongestPause;
    return;
  }
  pid_ = child;
  log_began_ = none_yet ? 0 : log_length;
  started_ = now;
  ++restarts_;
}

Millis Replica::starts_in(Instant now) const {
  return std::max(std::chrono::duration_cast<Millis>(not_before_ - now), Millis(0));
}

void Replica::signal(int number) const {
  if (pid_ != 0) ::kill(pid_, number);
}

std::string Replica::url() const {
  std::ifstream file(how_.run_file);
  pid_t pid = 0;
  std::string url;
  file >> pid >> url;
  return pid_ != 0 && pid == pid_ ? url : "";
}

}  // namespace baton::documents
