// baton hold: a lock for a program that talks to it by its pipes.
//
//              granted                     release, end of stdin or of the parent, SIGTERM
//   waiting ─────────────▶ held ──────────────────────────────────────────────▶ released
//      │ refused, stopped    │ lost                                              ▲
//      ▼                     ▼          the same, or the lock is over            │
//    error                  lost ────────────────────────────────────────────────┘
//
// One thread does all of that, and never waits for the reader of stdout (line_writer.h). The line
// "lost" is written by the thread that notices, because this one may be waiting for the store.

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <fcntl.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/hold_protocol.h"
#include "cli/line_writer.h"
#include "cli/lock_options.h"
#include "cli/open_client.h"
#include "cli/open_timeout.h"
#include "cli/signals.h"
#include "cli/store_wait.h"
#include "cli/supervisor.h"
#include "core/trust.h"

namespace baton::cli {
namespace {

// A lock that is granted within this time is not announced as waited for.
constexpr Millis kBeforeWaiting{300};

// In case that the signal of the parent's end is ignored.
constexpr Millis kLookEvery{1'000};

constexpr const char* kStdinClosed = "stdin was closed";

struct Plan {
  std::vector<LockName> names;
  std::vector<std::string> paths;
  AcquireOptions options;
  Millis wait{0};  // as asked for; what is left of it once the store is open is in the options
};

Result<Plan> make_plan(const HoldArguments& arguments, const Settings& settings) {
  Plan plan;
  std::optional<Mode> mode;
  for (const auto& text : arguments.names) {
    auto name = parse_name(text, arguments.predicate, settings.region);
    if (!name) return name.error();
    if (name->mode && mode && *name->mode != *mode) {
      return bad_request("all names are held in one mode: " + text + " has another one");
    }
    if (name->mode) mode = name->mode;
    plan.paths.push_back(print_path(name->name));
    plan.names.push_back(std::move(name->name));
  }
  auto options = lock_options(arguments, mode);
  if (!options) return options.error();
  plan.options = std::move(*options);
  plan.wait = plan.options.wait;
  if (!arguments.note.empty()) plan.options.note.text = arguments.note;
  auto ordinal = parse_number_argument("--ordinal", arguments.ordinal);
  if (!ordinal) return ordinal.error();
  plan.options.note.ordinal = *ordinal;
  auto below = parse_number_argument("--if-ordinal-below", arguments.if_ordinal_below);
  if (!below) return below.error();
  plan.options.if_ordinal_below = *below;
  return plan;
}

// The process that has started us. Its end wakes us up by SIGUSR2, if nothing else: a signal alone
// says too little, because it also comes when only the thread that started us has ended.
class Parent {
 public:
  Parent() : process_(getppid()) { prctl(PR_SET_PDEATHSIG, SIGUSR2); }
  [[nodiscard]] bool gone() const { return getppid() != process_; }

 private:
  pid_t process_;
};

// Whether the program has closed its end, told without reading from it.
bool hung_up(int file) {
  pollfd look{file, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP)) != 0;
}

// The answer to an acquire, which comes on another thread.
class Answer {
 public:
  Answer() : file_(eventfd(0, EFD_CLOEXEC)) {}
  ~Answer() { close(file_); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void put(Result<Lease> lease) {
    const std::lock_guard lock(mutex_);
    lease_.emplace(std::move(lease));
    const std::uint64_t one = 1;
    (void)!write(file_, &one, sizeof one);
  }
  std::optional<Result<Lease>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lease_, std::nullopt);
  }
  [[nodiscard]] int file() const { return file_; }  // readable once it is there

 private:
  int file_;
  std::mutex mutex_;
  std::optional<Result<Lease>> lease_;
};

// Why it is to end, and with which exit code if nothing goes wrong.
struct End {
  std::string why;
  int code = exit_code::ok;
  NoteChange note = {};
};

class Holder {
 public:
  Holder(const Plan& plan, bool progress, const Signals& signals, const Parent& parent,
         LineWriter& lines)
      : plan_(plan), progress_(progress), signals_(signals), parent_(parent), lines_(lines) {}

  Result<int> run(LockClient& locks) {
    auto lease = acquire(locks);
    if (!lease) {
      lines_.add(error_line(lease.error(), true));
      return end_ && end_->code > exit_code::by_signal ? Result<int>(end_->code) : lease.error();
    }
    lease_ = std::move(*lease);
    return keep();
  }

 private:
  // --- until it is granted

  Result<Lease> acquire(LockClient& locks) {
    const auto answer = std::make_shared<Answer>();
    std::stop_source stop;
    AcquireOptions options = plan_.options;
    options.stop = stop.get_token();
    locks.acquire_async(plan_.names, options,
                        [answer](Result<Lease> lease) { answer->put(std::move(lease)); });
    Instant tell_at = BootClock::now() + kBeforeWaiting;
    while (true) {
      if (auto lease = answer->take()) return answered(locks, std::move(*lease));
      if (progress_ && BootClock::now() >= tell_at) {
        lines_.add(waiting_line(plan_.paths));
        tell_at = Instant::max();
      }
      const auto next = std::min(BootClock::now() + kLookEvery, tell_at);
      wait_for_something(answer->file(), left_until(next) + Millis(1));
      if (!end_) continue;
      stop.request_stop();
      // A request that is under way is waited for. What it grants is given back by its destructor.
      while (!answer->take()) {
        pollfd answers{answer->file(), POLLIN, 0};
        poll(&answers, 1, -1);
      }
      return Error{.code = Code::cancelled, .message = "not granted yet: " + why_not_granted()};
    }
  }

  [[nodiscard]] std::string why_not_granted() const {
    if (end_->why != kStdinClosed) return end_->why;
    return end_->why + "; hold needs a stdin that stays open";
  }

  Result<Lease> answered(LockClient& locks, Result<Lease> lease) const {
    if (lease || lease.error().code != Code::timed_out) return lease;
    return explain_timeout(locks, plan_.names, plan_.wait, lease.error());
  }

  // --- while it is held

  Result<int> keep() {
    look_at_lease();
    lines_.add(granted());
    const std::stop_callback<std::function<void()>> on_loss(lease_.lost(), [this] { tell_loss(); });
    const StopEvent loss(lease_.lost());
    while (!end_ && !is_over()) {
      wait_for_something(told_loss_ ? -1 : loss.file(), look_within());
      if (!told_loss_ && look_at_lease() && progress_) lines_.add_news(renewed_line(trust()));
    }
    return give_back();
  }

  [[nodiscard]] std::string granted() const {
    return granted_line({.names = plan_.paths,
                         .key = lease_.key(),
                         .mode = lease_.mode(),
                         .token = lease_.token(),
                         .grant = to_string(lease_.grant()),
                         .ttl = lease_.ttl(),
                         .note = lease_.note(),
                         .tokens = lease_.tokens()},
                        trust());
  }

  [[nodiscard]] HoldTrust trust() const {
    const Instant now = BootClock::now();
    return {.now = now, .until = now + lease_.remaining()};
  }

  // Whether it has been renewed since the last look. From time to time, because a lease that is
  // lost does not tell any more until when it was ours.
  bool look_at_lease() {
    const Millis left = lease_.remaining();
    if (left <= Millis(0)) return false;
    const auto until = (BootClock::now() + left).time_since_epoch();
    // Far less than the time between two renewals, and more than the look itself takes.
    const bool renewed = until > trusted_until_.load() + core::margin(lease_.ttl()) / 5;
    trusted_until_ = until;
    return renewed;
  }

  [[nodiscard]] Instant over_at() const {
    return Instant(trusted_until_.load()) + core::margin(lease_.ttl());
  }

  [[nodiscard]] bool is_over() const { return told_loss_ && BootClock::now() >= over_at(); }

  [[nodiscard]] Millis look_within() const {
    if (told_loss_) return std::clamp(left_until(over_at()) + Millis(1), Millis(1), kLookEvery);
    return std::min(kLookEvery, core::margin(lease_.ttl()) / 2);
  }

  // On a thread of the client, which must not wait for anything. A release fires it too.
  void tell_loss() {
    if (releasing_ || told_loss_.exchange(true)) return;
    lines_.add(lost_line(why_lost(), left_until(over_at())));
  }

  [[nodiscard]] std::string why_lost() const {
    const std::string why = lease_.why_lost();
    return why.empty() ? "baton stood still for too long" : why;
  }

  [[nodiscard]] Error lost_error() const {
    return {.code = Code::lost,
            .message = "lost the lock " + shown_names() + " (" + why_lost() + ")"};
  }

  [[nodiscard]] std::string shown_names() const {
    std::string all;
    for (const auto& path : plan_.paths) all += (all.empty() ? "" : ", ") + path;
    return all;
  }

  // After a loss it acknowledges a break: the program has stopped, or the lock is over.
  Result<int> give_back() {
    releasing_ = true;
    const auto released = lease_.release({.note = end_ ? end_->note : NoteChange{}});
    if (told_loss_) return lost_error();
    if (released) {
      lines_.add(released_line(end_->why));
      return end_->code;
    }
    if (released.error().code == Code::lost) {
      tell_loss_at_release(released.error().message);
      return Error{.code = Code::lost, .message = released.error().message};
    }
    Error error = released.error();
    error.message = "could not release " + shown_names() + " (" + error.message +
                    "); it ends by itself within " + about(lease_.ttl());
    lines_.add(error_line(error, true));
    return error;
  }

  void tell_loss_at_release(const std::string& why) {
    if (!told_loss_.exchange(true)) lines_.add(lost_line(why, Millis(0)));
  }

  // --- what is waited for

  // Until `event` is readable, `limit` is over or something has come from outside.
  void wait_for_something(int event, Millis limit) {
    const bool listens = !lines_.full();
    if (listens && take_orders()) limit = Millis(0);
    std::array<pollfd, 5> files{
        pollfd{event, POLLIN, 0}, pollfd{signals_.file(), POLLIN, 0},
        pollfd{STDIN_FILENO, static_cast<short>(listens ? POLLIN : POLLRDHUP), 0},
        pollfd{STDOUT_FILENO, 0, 0},  // an error or a hang-up: nobody reads it
        pollfd{lines_.changed_file(), POLLIN, 0}};
    if (end_) return;
    poll(files.data(), files.size(), static_cast<int>(limit.count()));
    if (files[1].revents != 0) hear_signals();
    if (files[4].revents != 0) lines_.heard();
    if (listens && files[2].revents != 0) read_orders();
    if (!listens && files[2].revents != 0) end(kStdinClosed);
    if (files[3].revents != 0 || lines_.broken()) end("nobody reads stdout");
    if (parent_.gone()) end("the process that started baton has ended");
  }

  void end(std::string why, int code = exit_code::ok, NoteChange note = {}) {
    if (!end_) end_ = End{std::move(why), code, std::move(note)};
  }

  void hear_signals() {
    signalfd_siginfo signal{};
    while (signals_.next(signal)) {
      const int number = static_cast<int>(signal.ssi_signo);
      if (number == SIGTSTP) raise(SIGSTOP);
      if (ends(signal))
        end(std::string("SIG") + sigabbrev_np(number), exit_code::by_signal + number);
    }
  }

  void read_orders() {
    std::array<char, 4096> bytes;
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) orders_.add({bytes.data(), static_cast<std::size_t>(got)});
    if (got > 0) take_orders();
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) end(kStdinClosed);
  }

  // Whether there was one. As long as their answers find room: the others stay where they are.
  bool take_orders() {
    bool any = false;
    while (!end_ && !lines_.full()) {
      const auto line = orders_.next();
      if (!line) break;
      any = true;
      auto order = *line ? parse_hold_order(**line) : Result<HoldOrder>((*line).error());
      if (!order) {
        lines_.add(error_line(order.error(), false));
      } else {
        obey(*order);
      }
    }
    return any;
  }

  void obey(const HoldOrder& order) {
    const bool held = static_cast<bool>(lease_);
    if (order.verb == HoldOrder::Verb::release) {
      end("release", exit_code::ok, order.note);
    } else if (order.verb == HoldOrder::Verb::status) {
      const Instant now = BootClock::now();
      lines_.add(status_line(held && lease_.valid(), held ? trust() : HoldTrust{now, now}));
    } else if (!held) {
      lines_.add(
          error_line(bad_request("a note is written by the holder; not granted yet"), false));
    } else if (auto written = lease_.set_note(order.note); !written) {
      lines_.add(error_line(written.error(), false));
    } else {
      lines_.add(noted_line(lease_.note()));
    }
  }

  const Plan& plan_;
  const bool progress_;
  const Signals& signals_;
  const Parent& parent_;
  LineWriter& lines_;
  HoldLines orders_;
  Lease lease_;
  std::optional<End> end_;
  std::atomic<Instant::duration> trusted_until_{Instant::duration(0)};  // as of the last look
  std::atomic<bool> told_loss_{false};
  std::atomic<bool> releasing_{false};
};

}  // namespace

Result<int> hold(Context& context, const HoldArguments& arguments) {
  // One that was closed stands for nothing here: main.cc has opened it the wrong way round.
  const int in = fcntl(STDIN_FILENO, F_GETFL);
  const int out = fcntl(STDOUT_FILENO, F_GETFL);
  if (in < 0 || out < 0 || (in & O_ACCMODE) == O_WRONLY || (out & O_ACCMODE) == O_RDONLY) {
    return bad_request("baton hold talks on stdin and stdout: leave both open");
  }
  std::signal(SIGPIPE, SIG_IGN);
  const Signals signals;
  const Parent parent;
  LineWriter lines(STDOUT_FILENO);
  const auto refuse = [&](const Error& error) {
    lines.add(error_line(error, true));
    return error;
  };
  auto settings = resolve_settings(context);
  if (!settings) return refuse(settings.error());
  auto plan = make_plan(arguments, *settings);
  if (!plan) return refuse(plan.error());

  const Instant wait_until = BootClock::now() + plan->wait;
  const bool waits = plan->wait > Millis(0);
  StoreWait store_wait(context.out, wait_until);
  const auto again = [&](const Error& error) {
    return !parent.gone() && !hung_up(STDIN_FILENO) && store_wait(error);
  };
  std::optional<StopOnSignal> opening(signals);
  auto opened = open_client(*settings, arguments.metrics, context.out, again,
                            waits ? std::optional(wait_until) : std::nullopt);
  opening.reset();
  if (!opened) return refuse(opened.error());
  // Never 0, so that a wait that is over is told as one.
  if (waits) plan->options.wait = std::max(Millis(1), left_until(wait_until));
  return Holder(*plan, arguments.progress, signals, parent, lines).run(opened->locks);
}

}  // namespace baton::cli
