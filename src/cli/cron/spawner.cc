#include "cli/cron/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <set>
#include <string>

#include "cli/process_tree.h"

namespace baton::cli {
namespace {

constexpr std::size_t kFiles = 4;  // the watcher's socket, its trust, and two for output
constexpr std::size_t kMaxRequest = kMaxCommandBytes + (16U << 10U);

// What the process answers with at its start; else the process id of a watcher, or -errno.
constexpr int kReady = 0;

// So often it is looked for an answer. Not a time by a clock: a machine that was suspended, or a
// baton that was stopped, has not waited.
constexpr int kLooks = 50;
constexpr int kLookEveryMs = 100;

using Files = std::array<int, kFiles>;

Error cannot_spawn(const std::string& what, int problem) {
  return {.code = Code::unavailable,
          .message = "cannot start the command: " + what + ": " + std::strerror(problem)};
}

// Each part ends with a zero byte.
std::string encode(const WatchedCommand& command) {
  std::string text = std::to_string(command.grace.count()) + '\0';
  text += command.directory + '\0' + command.program + '\0';
  for (const std::string& word : command.command) text += word + '\0';
  return text;
}

WatchedCommand decode(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find('\0'), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  WatchedCommand command;
  if (parts.size() < 3) return command;
  command.grace = Millis(std::atoll(parts[0].c_str()));
  command.directory = parts[1];
  command.program = parts[2];
  command.command.assign(parts.begin() + 3, parts.end());
  command.apart = true;
  return command;
}

// 0, or errno.
int send_with_files(int socket, const std::string& text, const Files& files) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFiles)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * kFiles);
  std::memcpy(CMSG_DATA(header), files.data(), sizeof(int) * kFiles);
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0 ? 0 : errno;
}

bool is_ignored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// Ended and collected, or somebody else's.
bool is_collected(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; }

// What sets up the process beside it: a session of its own, our signals as they were at first, and
// its end of the socket, which it gets by its number.
class SpawnSettings {
 public:
  SpawnSettings(int socket, const sigset_t& mask, bool sigpipe_too) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t to_default;
    sigemptyset(&to_default);
    if (sigpipe_too) sigaddset(&to_default, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setsigdefault(&attributes_, &to_default);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&actions_, socket, socket);  // not closed by exec any more
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  // 0 or errno.
  int start(const char* program, char* const* arguments, pid_t& pid) const {
    return posix_spawn(&pid, program, &actions_, &attributes_, arguments, environ);
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

// The process itself.
class Serving {
 public:
  explicit Serving(int socket) : socket_(socket) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_before_);
    std::signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, kSpawnerProgram);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGCONT);  // if it is stopped when we are killed, it goes on, and ends
    fcntl(socket_, F_SETFD, FD_CLOEXEC);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    children_ = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  [[noreturn]] void run() {
    if (children_ < 0) _exit(1);
    answer(kReady);
    while (true) {
      std::array<pollfd, 2> files{pollfd{socket_, POLLIN, 0}, pollfd{children_, POLLIN, 0}};
      poll(files.data(), files.size(), -1);
      signalfd_siginfo signal{};
      while (read(children_, &signal, sizeof signal) > 0) {
      }
      collect();
      if (files[0].revents != 0) serve_one();
    }
  }

 private:
  // Only a watcher that was killed leaves processes that have to be ended.
  void collect() {
    bool killed = false;
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
      if (watchers_.erase(pid) > 0 && WIFSIGNALED(status)) killed = true;
    }
    if (killed) end_orphans();
  }

  // Each round may make more: when an orphan ends, the processes that it has started become ours.
  void end_orphans() {
    while (true) {
      std::vector<pid_t> orphans;
      for (const pid_t pid : children_of(getpid())) {
        if (watchers_.contains(pid)) continue;
        orphans.push_back(pid);
        for (const pid_t below : descendants_of(pid)) orphans.push_back(below);
      }
      if (!send_signal(orphans, SIGKILL).anybody) return;
      int status = 0;
      for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0;
           pid = waitpid(-1, &status, WNOHANG)) {
        watchers_.erase(pid);
      }
      usleep(1000);
    }
  }

  void serve_one() {
    std::string text(kMaxRequest, '\0');
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFiles)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) return;
    if (size <= 0) _exit(0);
    Files files{};
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(int) * kFiles)) _exit(1);
    std::memcpy(files.data(), CMSG_DATA(header), sizeof(int) * kFiles);
    text.resize(static_cast<std::size_t>(size));
    const pid_t pid = fork();
    if (pid == 0) become_watcher(text, files);
    const int reply = pid < 0 ? -errno : pid;
    if (pid > 0) watchers_.insert(pid);
    for (const int file : files) close(file);
    answer(reply);
  }

  void answer(int reply) const { (void)!send(socket_, &reply, sizeof reply, MSG_NOSIGNAL); }

  [[noreturn]] void become_watcher(const std::string& text, const Files& files) {
    // If it is stopped when we are killed, it goes on, and ends the command.
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    close(socket_);
    close(children_);
    void* place = mmap(nullptr, sizeof(Trust), PROT_READ | PROT_WRITE, MAP_SHARED, files[1], 0);
    if (place == MAP_FAILED) _exit(1);
    close(files[1]);
    WatchedCommand command = decode(text);
    command.out = files[2];
    command.errors = files[3];
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    watch(files[0], *static_cast<Trust*>(place), command);
  }

  const int socket_;
  sigset_t mask_before_{};
  int children_ = -1;
  std::set<pid_t> watchers_;
};

}  // namespace

void run_spawner(const char* descriptor) {
  const int socket = std::atoi(descriptor);
  // Where a library of ours opens a descriptor that exec does not close, it may have come along.
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(socket) - 1, 0);
  close_range(static_cast<unsigned>(socket) + 1, ~0U, 0);
  Serving(socket).run();
}

Spawner::Spawner() : ignores_sigpipe_(is_ignored(SIGPIPE)) {
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
}

Result<std::unique_ptr<Spawner>> Spawner::start() {
  std::unique_ptr<Spawner> spawner(new Spawner());
  if (auto launched = spawner->launch(); !launched) return launched.error();
  return spawner;
}

Spawner::~Spawner() {
  if (socket_ >= 0) close(socket_);
  for (int i = 0; i < kLooks * kLookEveryMs && pid_ != 0; ++i) {
    kill(pid_, SIGCONT);
    if (is_collected(pid_)) return;
    usleep(1000);
  }
  if (pid_ != 0) kill(pid_, SIGKILL);
}

// Under the name of the old socket, which somebody may poll.
Result<void> Spawner::launch() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cannot_spawn("socketpair", errno);
  }
  if (socket_ < 0) {
    socket_ = ends[0];
  } else {
    dup3(ends[0], socket_, O_CLOEXEC);
    close(ends[0]);
  }
  std::string name(kSpawnerProgram);
  std::string descriptor = std::to_string(ends[1]);
  const std::array<char*, 3> arguments{name.data(), descriptor.data(), nullptr};
  const SpawnSettings settings(ends[1], mask_, !ignores_sigpipe_);
  int problem = settings.start("/proc/self/exe", arguments.data(), pid_);
  if (problem == ENOENT) {  // no /proc
    const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (path != nullptr) problem = settings.start(path, arguments.data(), pid_);
  }
  close(ends[1]);
  if (problem != 0) {
    pid_ = 0;
    return cannot_spawn("posix_spawn", problem);
  }
  if (const int ready = answer(); ready != kReady) {
    kill(pid_, SIGKILL);  // else this answer might be taken for that to a request
    return cannot_spawn("the process that starts commands", -ready);
  }
  return {};
}

Result<void> Spawner::replace() {
  if (pid_ != 0) {
    kill(pid_, SIGKILL);
    killed_.push_back(pid_);
    pid_ = 0;
  }
  ++replaced_;
  return launch();
}

bool Spawner::is_gone() const {
  pollfd hung_up{socket_, 0, 0};
  return pid_ == 0 || poll(&hung_up, 1, 0) > 0;
}

Result<void> Spawner::revive() {
  const std::lock_guard lock(mutex_);
  return is_gone() ? replace() : Result<void>();
}

// Negative: errno of what it came to instead.
int Spawner::answer() const {
  for (int i = 0; i < kLooks; ++i) {
    pollfd socket{socket_, POLLIN, 0};
    if (poll(&socket, 1, kLookEveryMs) <= 0) {
      kill(pid_, SIGCONT);  // if somebody has stopped it
      continue;
    }
    int reply = 0;
    return recv(socket_, &reply, sizeof reply, MSG_DONTWAIT) == sizeof reply ? reply : -ECONNRESET;
  }
  return -ETIMEDOUT;
}

Result<SpawnedWatcher> Spawner::spawn(const WatchedCommand& command) {
  const std::string text = encode(command);
  if (text.size() > kMaxRequest) return cannot_spawn("its command line", E2BIG);
  const int shared = memfd_create("baton-trust", MFD_CLOEXEC);
  if (shared < 0) return cannot_spawn("memfd_create", errno);
  void* place = MAP_FAILED;
  if (ftruncate(shared, sizeof(Trust)) == 0) {
    place = mmap(nullptr, sizeof(Trust), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  }
  int ends[2] = {-1, -1};
  if (place == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    const int problem = errno;
    if (place != MAP_FAILED) munmap(place, sizeof(Trust));
    close(shared);
    return cannot_spawn("mmap or socketpair", problem);
  }
  auto* trust = new (place) Trust;
  const int reply = request(text, {ends[1], shared, command.out, command.errors});
  close(ends[1]);
  close(shared);
  if (reply > 0) return SpawnedWatcher{reply, ends[0], trust};
  close(ends[0]);
  munmap(place, sizeof(Trust));
  auto error = cannot_spawn("the process that starts commands", -reply);
  if (reply == -ETIMEDOUT || reply == -ECONNRESET || reply == -EPIPE) {
    error = {.code = Code::unavailable,
             .message = "the process that starts commands was killed, or did not answer",
             .retryable = true};
  }
  return error;
}

// Not asked again if it does not answer: it may have forked a watcher all the same, which has this
// socket, and starts nothing because nobody will be at the other end.
int Spawner::request(const std::string& text, const std::array<int, 4>& files) {
  const std::lock_guard lock(mutex_);
  std::erase_if(killed_, is_collected);
  if (is_gone() && !replace()) return -ECONNRESET;
  const int problem = send_with_files(socket_, text, files);
  const int reply = problem == 0 ? answer() : -problem;
  if (reply == -ETIMEDOUT) (void)replace();
  return reply;
}

}  // namespace baton::cli
