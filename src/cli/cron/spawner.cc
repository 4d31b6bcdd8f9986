#include "cli/cron/spawner.h"

#include <poll.h>
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
constexpr std::size_t kMaxRequest = kMaxCommandBytes + 16U * 1024;

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

bool send_with_files(int socket, const std::string& text, const std::array<int, kFiles>& files) {
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
  return sent >= 0;
}

// The process itself.
class Serving {
 public:
  explicit Serving(int socket) : socket_(socket) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_before_);
    std::signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "baton-spawner");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid();
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    children_ = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  [[noreturn]] void run() {
    if (children_ < 0) _exit(1);
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
    std::array<int, kFiles> files{};
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(int) * kFiles)) _exit(1);
    std::memcpy(files.data(), CMSG_DATA(header), sizeof(int) * kFiles);
    text.resize(static_cast<std::size_t>(size));
    const pid_t pid = fork();
    if (pid == 0) become_watcher(text, files);
    const int reply = pid < 0 ? -errno : pid;
    if (pid > 0) watchers_.insert(pid);
    for (const int file : files) close(file);
    (void)!send(socket_, &reply, sizeof reply, MSG_NOSIGNAL);
  }

  [[noreturn]] void become_watcher(const std::string& text, const std::array<int, kFiles>& files) {
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

Result<std::unique_ptr<Spawner>> Spawner::fork_early() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cannot_spawn("socketpair", errno);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    Serving(ends[1]).run();
  }
  const int problem = errno;
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return cannot_spawn("fork", problem);
  }
  return std::unique_ptr<Spawner>(new Spawner(pid, ends[0]));
}

Spawner::~Spawner() {
  close(socket_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<SpawnedWatcher> Spawner::spawn(const WatchedCommand& command) {
  const std::string request = encode(command);
  if (request.size() > kMaxRequest) return cannot_spawn("its command line", E2BIG);
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
  int reply = -ECONNRESET;
  {
    const std::lock_guard lock(mutex_);
    if (send_with_files(socket_, request, {ends[1], shared, command.out, command.errors})) {
      ssize_t got = 0;
      do {
        got = recv(socket_, &reply, sizeof reply, 0);
      } while (got < 0 && errno == EINTR);
      if (got != sizeof reply) reply = -ECONNRESET;
    } else {
      reply = -errno;
    }
  }
  close(ends[1]);
  close(shared);
  if (reply > 0) return SpawnedWatcher{reply, ends[0], trust};
  close(ends[0]);
  munmap(place, sizeof(Trust));
  return cannot_spawn("the process that starts commands", -reply);
}

}  // namespace baton::cli
