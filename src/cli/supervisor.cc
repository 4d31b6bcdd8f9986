#include "cli/supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include <fmt/core.h>

#include "core/trust.h"

namespace baton::cli {
namespace {

// Between SIGTSTP and SIGSTOP.
constexpr Millis kTimeToTidyTheTerminal{50};

// The margin is the time from the loss signal until the store may give the lock away. All processes
// of the command must have ended by then; this part of the margin is for SIGKILL and for collecting
// them.
constexpr Millis kTimeToKill{100};

// The watcher acts later than we do, by this part of the margin (a fifth), so that it ends the
// command only if we have not begun to.
constexpr int kWatcherIsLaterBy = 5;

// So many rounds of SIGKILL may reach nobody before we give up: the watcher tells us a moment late
// that a process has ended.
constexpr int kRoundsInVain = 100;

// When the command has ended, the watcher has this long to report that it left no process behind,
// as is nearly always so. Otherwise the processes that are left are asked to end.
constexpr Millis kTimeToReportNoneLeft{20};

Millis time_to_end(Millis grace, Millis ttl) {
  return std::min(grace, core::margin(ttl) - kTimeToKill);
}

}  // namespace

StopEvent::StopEvent(const std::stop_token& stop)
    : file_(eventfd(0, EFD_CLOEXEC)), callback_(stop, Notify{file_}) {}

StopEvent::~StopEvent() { close(file_); }

void StopEvent::Notify::operator()() const {
  const std::uint64_t one = 1;
  (void)!write(file, &one, sizeof one);
}

Supervisor::Supervisor(Child& child, const Signals& signals, const Lease& lease,
                       const std::stop_token& loss, Millis grace, Warn warn)
    : child_(child),
      signals_(&signals),
      lease_(lease),
      grace_(grace),
      warn_(std::move(warn)),
      loss_(loss),
      over_at_(BootClock::now()) {}

Supervisor::Supervisor(Child& child, const Lease& lease, Millis grace, Warn warn)
    : child_(child),
      signals_(nullptr),
      lease_(lease),
      grace_(grace),
      warn_(std::move(warn)),
      loss_(lease.lost()),
      over_at_(BootClock::now()) {}

void Supervisor::limit(Limits limits) {
  limits_ = std::move(limits);
  stop_.emplace(limits_.stop);
}

// The watcher learns until when the lease is trusted before there is anything to watch, and looks
// at that again before it starts the command: we may have stood still since the grant.
Result<void> Supervisor::start(const std::vector<std::string>& environment, int& exec_error) {
  exec_error = 0;
  if (!look_at_lease()) return ran_out_before_start();
  return child_.start(environment, exec_error);
}

int Supervisor::wait() {
  if (limits_.timeout > Millis(0)) timeout_at_ = BootClock::now() + limits_.timeout;
  while (true) {
    look_at_lease();
    const auto ended = child_.reap();
    if (!lost_ && !ending_ && child_.ended_by_watcher()) begin_end();
    if (!ending_ && child_.watcher_is_gone()) watcher_was_killed();
    if (!ending_ && ended && !(limits_.end_what_is_left && child_.any_left())) return *ended;
    if (!ending_) heed_limits(ended.has_value());
    if (ending_ && !child_.any_left()) return ended.value_or(exit_code::lost);
    if (out_of_reach_ && BootClock::now() >= over_at_) {
      left_behind_ = true;
      return exit_code::lost;
    }
    if (ending_ && BootClock::now() >= kill_at_) {
      const Reached reached = child_.signal_all(SIGKILL);
      rounds_in_vain_ = reached.anybody ? 0 : rounds_in_vain_ + 1;
      out_of_reach_ =
          !reached.anybody && (!reached.refused.empty() || rounds_in_vain_ >= kRoundsInVain);
      tell(reached);
    }
    std::array<pollfd, 4> files{pollfd{signals_ == nullptr ? -1 : signals_->file(), POLLIN, 0},
                                pollfd{lost_ ? -1 : loss_.file(), POLLIN, 0},
                                pollfd{child_.watcher_is_gone() ? -1 : child_.file(), POLLIN, 0},
                                pollfd{stop_ && !stopped_ ? stop_->file() : -1, POLLIN, 0}};
    poll(files.data(), files.size(), poll_for());
    if (files[1].revents != 0) begin_end();
    if (files[3].revents != 0) stopped_ = true;
    signalfd_siginfo signal{};
    while (signals_ != nullptr && signals_->next(signal)) pass_on(signal);
  }
}

// While the lock is ours there is no hurry: renewals go on until the command has ended.
void Supervisor::heed_limits(bool command_ended) {
  const Instant now = BootClock::now();
  if (command_ended) rest_at_ = std::min(rest_at_, now + kTimeToReportNoneLeft);
  if (!command_ended && now >= timeout_at_) timed_out_ = true;
  if (!asked_ && (stopped_ || timed_out_ || now >= rest_at_)) ask_to_end();
  if (now >= patience_until_) end_at(now);
}

void Supervisor::ask_to_end() {
  asked_ = true;
  patience_until_ = BootClock::now() + grace_;
  tell(child_.signal_all(SIGTERM));
  child_.signal_all(SIGCONT);
}

int Supervisor::poll_for() const {
  if (ending_) return 10;
  const Instant next = std::min(
      {asked_ ? Instant::max() : timeout_at_, asked_ ? Instant::max() : rest_at_, patience_until_});
  const int within = look_within();
  const Instant now = BootClock::now();
  if (next >= now + Millis(within)) return within;
  return static_cast<int>(std::max(std::chrono::ceil<Millis>(next - now), Millis(0)).count());
}

// Called from time to time, because a lost lease no longer tells until when it was ours, and after
// a stop or a suspend we may hear of the loss late. Tells the watcher each time.
bool Supervisor::look_at_lease() {
  const Instant now = BootClock::now();
  const Millis left = lease_.remaining();
  if (left <= Millis(0) || ending_) return false;
  const Millis margin = core::margin(lease_.ttl());
  over_at_ = now + left + margin;
  const Instant watcher_ends_at = now + left + margin / kWatcherIsLaterBy;
  child_.trust_until(watcher_ends_at,
                     std::min(watcher_ends_at + std::min(grace_, margin), over_at_ - kTimeToKill));
  return true;
}

// A renewal may come through in the last moment: the watcher must hear of it before it acts.
int Supervisor::look_within() const {
  const Millis left = lease_.remaining();
  const Millis often = core::margin(lease_.ttl()) / 2;
  return static_cast<int>((left > Millis(0) ? std::min(left + Millis(1), often) : often).count());
}

void Supervisor::begin_end() {
  lost_ = true;
  const Instant now = BootClock::now();
  end_at(std::min(now + time_to_end(grace_, lease_.ttl()), over_at_ - kTimeToKill));
  if (now >= kill_at_) return;  // a stopped command must not even wake up
  tell(child_.signal_all(SIGTERM));
  child_.signal_all(SIGCONT);  // a stopped process would not hear of it
}

void Supervisor::end_at(Instant kill_at) {
  ending_ = true;
  kill_at_ = kill_at;
  child_.ends_by(kill_at);
}

// The kernel has killed the command then. The processes that it started are ended too, because
// nobody would watch them.
void Supervisor::watcher_was_killed() {
  warn_("the process that watches over the command was killed, and the command with it");
  end_at(BootClock::now());
}

void Supervisor::tell(const Reached& reached) {
  if (told_ || reached.refused.empty()) return;
  told_ = true;
  warn_(
      fmt::format("may not signal process {}, which runs as another user; if the lock is lost it "
                  "goes on without it",
                  reached.refused.front()));
}

void Supervisor::pass_on(const signalfd_siginfo& signal) {
  const int number = static_cast<int>(signal.ssi_signo);
  if (number == SIGCHLD) return;
  if (ends(signal)) asked_to_end_ = true;
  // A command that was stopped with us is not continued if the lock ran out meanwhile.
  const bool too_late = number == SIGCONT && !lease_.valid();
  if (!from_terminal(signal) && !too_late) tell(child_.signal(number));
  if (number != SIGTSTP) return;
  // A stopped baton does not renew. The command is stopped as well, so nobody works under a lock
  // that runs out; if it has when we are continued, the keeper notices and we end it. SIGTSTP
  // alone is not enough: a command may ignore it, and the kernel does for groups without a shell.
  std::this_thread::sleep_for(kTimeToTidyTheTerminal);
  child_.signal_all(SIGSTOP);
  raise(SIGSTOP);
  if (lease_.valid()) child_.signal_all(SIGCONT);
}

std::vector<std::string> environment_of(const Lease& lease) {
  return {"BATON_NAME=" + lease.key(), "BATON_TOKEN=" + std::to_string(lease.token()),
          "BATON_GRANT=" + to_string(lease.grant()),
          // The spelling that every fence takes.
          "BATON_MODE=" + std::string(short_name(lease.mode())),
          "BATON_FENCE=" + print_fence_tokens(lease.tokens())};
}

Millis grace_if_killed(const std::string& store, Millis grace) {
  return store.starts_with("postgres-advisory:") ? Millis(0) : grace;
}

int cannot_start(Context& context, const std::string& command, int code) {
  const bool missing = code == exit_code::not_found;
  context.out.error(
      missing ? "not_found" : "cannot_execute",
      fmt::format("{}: {}", command,
                  missing ? "command not found; give a path or check PATH" : "not executable"));
  return code;
}

}  // namespace baton::cli
