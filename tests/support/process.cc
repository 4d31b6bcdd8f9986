#include "support/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace baton::test {
namespace {

[[noreturn]] void throw_errno(const std::string& what, int error = errno) {
  throw std::system_error(error, std::generic_category(), what);
}

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  Fd read;
  Fd write;
};

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
};

std::optional<User> find_user(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const passwd* entry = ::getpwnam(name.c_str());
  if (entry == nullptr) throw std::runtime_error("no such user: " + name);
  return User{entry->pw_uid, entry->pw_gid};
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& extra,
                                          const std::vector<std::string>& unset) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const bool left_out = std::find(unset.begin(), unset.end(), name) != unset.end();
    if (!left_out && !extra.contains(name)) all.emplace_back(text);
  }
  for (const auto& [name, value] : extra) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// All that the child needs, made before the fork: between fork and exec of a process with threads
// only async-signal-safe calls are allowed.
struct Launch {
  char* const* argv;
  char* const* env;
  const char* cwd;
  std::optional<User> user;
  int in, out, err, report;
};

[[noreturn]] void become(const Launch& launch) {
  // A test may ignore or block signals; the child starts as from a shell.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);

  bool ok = ::dup2(launch.in, STDIN_FILENO) >= 0 && ::dup2(launch.out, STDOUT_FILENO) >= 0 &&
            ::dup2(launch.err, STDERR_FILENO) >= 0;
  if (ok && launch.user) {
    ok = ::setgroups(1, &launch.user->gid) == 0 && ::setgid(launch.user->gid) == 0 &&
         ::setuid(launch.user->uid) == 0;
  }
  if (ok && launch.cwd != nullptr) ok = ::chdir(launch.cwd) == 0;
  if (ok) ::execvpe(launch.argv[0], launch.argv, launch.env);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(launch.report, &error, sizeof error);
  ::_exit(127);
}

// Writing to a child that is gone must not kill the test, and the disposition of SIGPIPE belongs
// to the code under test: so the signal is held back in this thread for the time of the call.
ssize_t write_without_sigpipe(int fd, std::string_view text) {
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int error = errno;
  if (written < 0 && error == EPIPE) {
    const timespec now{};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

}  // namespace

std::string ExitStatus::describe() const {
  if (signal != 0) return std::string("killed by ") + ::strsignal(signal);
  return "exit " + std::to_string(code);
}

// Collects both outputs on a thread of its own.
class Process::Streams {
 public:
  enum Which { standard_out = 0, standard_err = 1 };

  Streams(Fd out_fd, Fd err_fd) : child_gone_(::eventfd(0, EFD_CLOEXEC)) {
    if (child_gone_.get() < 0) throw_errno("eventfd");
    streams_[standard_out].fd = std::move(out_fd);
    streams_[standard_err].fd = std::move(err_fd);
    for (Stream& stream : streams_) ::fcntl(stream.fd.get(), F_SETFL, O_NONBLOCK);
    thread_ = std::jthread([this] { collect(); });
  }

  // What a dead child wrote is all in the pipes, so reading them dry is complete; a grandchild may
  // hold them open for ever, so end of file is not awaited.
  void finish() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(child_gone_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }

  std::string text(Which which) const {
    const std::lock_guard lock(mutex_);
    return streams_[which].text;
  }

  bool wait_for(Which which, std::string_view wanted, std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    const Stream& stream = streams_[which];
    const auto seen = [&] { return stream.text.find(wanted) != std::string::npos; };
    changed_.wait_for(lock, limit, [&] { return seen() || stream.ended; });
    return seen();
  }

 private:
  struct Stream {
    Fd fd;
    std::string text;
    bool ended = false;
  };

  void collect() {
    bool last_round = false;
    while (!last_round && !(streams_[standard_out].ended && streams_[standard_err].ended)) {
      std::array<pollfd, 3> polled{};
      for (int i = 0; i < 2; ++i) {
        polled[i] = {streams_[i].ended ? -1 : streams_[i].fd.get(), POLLIN, 0};
      }
      polled[2] = {child_gone_.get(), POLLIN, 0};
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
      last_round = (polled[2].revents & POLLIN) != 0;
      for (Stream& stream : streams_) read_available(stream);
    }
    const std::lock_guard lock(mutex_);
    for (Stream& stream : streams_) stream.ended = true;
    changed_.notify_all();
  }

  void read_available(Stream& stream) {
    std::array<char, 16384> buffer;
    while (!stream.ended) {
      const ssize_t count = ::read(stream.fd.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      const std::lock_guard lock(mutex_);
      if (count > 0) {
        stream.text.append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        stream.ended = true;
      }
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Stream, 2> streams_;
  Fd child_gone_;
  std::jthread thread_;
};

struct Process::Reaper {
  std::mutex mutex;
  std::optional<ExitStatus> status;
};

Process::Process(ProcessOptions options) : reaper_(std::make_unique<Reaper>()) {
  if (options.argv.empty()) throw std::invalid_argument("a process needs a command");
  Pipe in;
  Pipe out;
  Pipe err;
  Pipe report;
  std::vector<std::string> env = environment_with(options.env, options.unset);
  const std::vector<char*> argv_pointers = pointers_to(options.argv);
  const std::vector<char*> env_pointers = pointers_to(env);
  const Launch launch{.argv = argv_pointers.data(),
                      .env = env_pointers.data(),
                      .cwd = options.cwd.empty() ? nullptr : options.cwd.c_str(),
                      .user = find_user(options.user),
                      .in = in.read.get(),
                      .out = out.write.get(),
                      .err = err.write.get(),
                      .report = report.write.get()};

  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) become(launch);

  // The report pipe closes by itself when the exec succeeds.
  report.write.reset();
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(report.read.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    ::waitpid(pid_, nullptr, 0);
    throw_errno("cannot start " + options.argv[0], error);
  }
  stdin_ = in.write.release();
  out.write.reset();
  err.write.reset();
  streams_ = std::make_unique<Streams>(std::move(out.read), std::move(err.read));
}

Process::~Process() {
  // In this order: a child that acts on the end of its input must not get to see it.
  kill(SIGKILL);
  wait(patience);
  close_stdin();
  streams_->finish();
}

pid_t Process::pid() const { return pid_; }

void Process::kill(int signal) {
  const std::lock_guard lock(reaper_->mutex);
  if (!reaper_->status) ::kill(pid_, signal);
}

std::optional<ExitStatus> Process::wait(std::chrono::nanoseconds limit) {
  std::optional<ExitStatus> result;
  poll_until(
      [&] {
        const std::lock_guard lock(reaper_->mutex);
        int status = 0;
        if (!reaper_->status && ::waitpid(pid_, &status, WNOHANG) == pid_) {
          streams_->finish();
          reaper_->status = WIFSIGNALED(status) ? ExitStatus{.code = 128 + WTERMSIG(status),
                                                             .signal = WTERMSIG(status)}
                                                : ExitStatus{.code = WEXITSTATUS(status)};
        }
        result = reaper_->status;
        return result.has_value();
      },
      limit);
  return result;
}

bool Process::running() { return !wait(std::chrono::nanoseconds(0)); }

bool Process::write(std::string_view text) {
  while (!text.empty() && stdin_ >= 0) {
    const ssize_t written = write_without_sigpipe(stdin_, text);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return text.empty();
}

void Process::close_stdin() {
  if (stdin_ >= 0) ::close(std::exchange(stdin_, -1));
}

std::string Process::out() const { return streams_->text(Streams::standard_out); }
std::string Process::err() const { return streams_->text(Streams::standard_err); }

bool Process::wait_for_out(std::string_view text, std::chrono::nanoseconds limit) {
  return streams_->wait_for(Streams::standard_out, text, limit);
}
bool Process::wait_for_err(std::string_view text, std::chrono::nanoseconds limit) {
  return streams_->wait_for(Streams::standard_err, text, limit);
}

bool stop_still(pid_t pid) {
  if (::kill(pid, SIGSTOP) != 0) return false;
  const auto tasks = "/proc/" + std::to_string(pid) + "/task";
  return poll_until([&] {
    std::error_code gone;
    std::size_t threads = 0;
    for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
      std::string line;
      std::getline(std::ifstream(task.path() / "stat"), line);
      const auto name_end = line.rfind(')');
      if (name_end == std::string::npos || line.substr(name_end, 3) != ") T") return false;
      ++threads;
    }
    return threads > 0;
  });
}

Finished run(ProcessOptions options, std::chrono::nanoseconds limit) {
  const std::string name = options.argv.empty() ? "" : options.argv[0];
  Process process(std::move(options));
  process.close_stdin();
  const auto status = process.wait(limit);
  if (!status) throw std::runtime_error(name + " did not end in time: " + process.err());
  return {*status, process.out(), process.err()};
}

}  // namespace baton::test
