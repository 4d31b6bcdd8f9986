#include "cli/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace baton::cli {
namespace {

constexpr std::array kOurs = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

constexpr int kLookEveryMs = 20;

// A user who started us under nohup or in the background does not want to be ended by it; a blocked
// signal would come all the same.
bool ignored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  // A parent may have left it ignored, and then nobody would learn that a child has ended.
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : kOurs) {
    if (!ignored(number)) sigaddset(&ours, number);
  }
  pthread_sigmask(SIG_BLOCK, &ours, &before_);
  file_ = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() {
  close(file_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Signals::next(signalfd_siginfo& signal) const {
  return read(file_, &signal, sizeof signal) == sizeof signal;
}

bool from_terminal(const signalfd_siginfo& signal) { return signal.ssi_code > 0; }

bool ends(const signalfd_siginfo& signal) {
  return signal.ssi_signo == SIGINT || signal.ssi_signo == SIGTERM || signal.ssi_signo == SIGHUP ||
         signal.ssi_signo == SIGQUIT;
}

StopOnSignal::StopOnSignal(const Signals& signals)
    : wake_(eventfd(0, EFD_CLOEXEC)), thread_([this, &signals] { watch(signals); }) {}

StopOnSignal::~StopOnSignal() {
  finish();
  close(wake_);
}

int StopOnSignal::finish() {
  if (thread_.joinable()) {
    over_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
    thread_.join();
  }
  return signal_;
}

void StopOnSignal::watch(const Signals& signals) {
  std::array<pollfd, 2> files{pollfd{signals.file(), POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
  while (true) {
    // Where no descriptor was left for the wake-up, it looks from time to time.
    if (poll(files.data(), files.size(), wake_ < 0 ? kLookEveryMs : -1) < 0) continue;
    if (over_) return;
    signalfd_siginfo signal{};
    while (signals.next(signal)) {
      if (signal.ssi_signo == SIGTSTP) raise(SIGSTOP);
      if (!ends(signal)) continue;
      signal_ = static_cast<int>(signal.ssi_signo);
      if (!politely_) _exit(128 + signal_);
      stop_.request_stop();
      return;
    }
  }
}

}  // namespace baton::cli
