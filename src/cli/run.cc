// baton run: a command under a lock.

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "core/trust.h"
#include "policy/duration.h"

namespace baton::cli {
namespace {

// Between SIGTSTP and SIGSTOP.
constexpr Millis kTimeToTidyTheTerminal{50};

struct Plan {
  NameArgument what;
  AcquireOptions options;
  Millis grace{0};
};

Result<Metadata> parse_metadata(const std::vector<std::string>& pairs) {
  Metadata metadata;
  for (const auto& pair : pairs) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return bad_request("--metadata: '" + pair + "' is not key=value");
    }
    metadata[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return metadata;
}

Result<Plan> make_plan(const RunArguments& arguments, const Settings& settings) {
  Plan plan;
  auto name = parse_name(arguments.name, arguments.predicate, settings.region);
  if (!name) return name.error();
  plan.what = std::move(*name);
  auto mode = parse_mode_argument(arguments.mode);
  if (!mode) return mode.error();
  plan.options.mode = mode->value_or(plan.what.mode.value_or(Mode::X));
  auto ttl = parse_duration_argument("--ttl", arguments.ttl, Millis(1), kMaxTtl);
  if (!ttl) return ttl.error();
  plan.options.ttl = *ttl;
  auto wait = parse_duration_argument("--wait", arguments.wait, Millis(0), kMaxWait);
  if (!wait) return wait.error();
  plan.options.wait = *wait;
  auto least =
      parse_duration_argument("--at-least-for", arguments.at_least_for, Millis(0), kMaxTtl);
  if (!least) return least.error();
  plan.options.at_least_for = *least;
  auto grace = parse_duration_argument("--grace", arguments.grace);
  if (!grace) return grace.error();
  plan.grace = *grace;
  auto metadata = parse_metadata(arguments.metadata);
  if (!metadata) return metadata.error();
  plan.options.metadata = std::move(*metadata);
  return plan;
}

// Between the loss signal and the moment the store may give the lock away lies the margin. What
// still runs has to be gone before that; killing and collecting it takes a little time too.
Millis time_to_end(Millis grace, Millis ttl) {
  return std::min(grace, core::margin(ttl) - Millis(100));
}

// Makes a stop token something that poll can wait for.
class LossEvent {
 public:
  explicit LossEvent(const std::stop_token& lost)
      : file_(eventfd(0, EFD_CLOEXEC)), callback_(lost, Notify{file_}) {}
  ~LossEvent() { close(file_); }
  LossEvent(const LossEvent&) = delete;
  LossEvent& operator=(const LossEvent&) = delete;
  [[nodiscard]] int file() const { return file_; }

 private:
  struct Notify {
    int file;
    void operator()() const {
      const std::uint64_t one = 1;
      (void)!write(file, &one, sizeof one);
    }
  };
  int file_;
  std::stop_callback<Notify> callback_;
};

// Watches over the command until it, or on loss all that it started, has ended.
class Supervisor {
 public:
  Supervisor(Child& child, const Signals& signals, const Lease& lease, Millis grace)
      : child_(child), signals_(signals), lease_(lease), grace_(grace), loss_(lease.lost()) {}

  int wait() {
    while (true) {
      const auto ended = child_.reap();
      if (!lost_ && ended) return *ended;
      if (lost_ && !Child::any_left()) return ended.value_or(exit_code::lost);
      if (lost_ && !killing_ && BootClock::now() >= kill_at_) killing_ = true;
      if (killing_) child_.signal_all(SIGKILL);
      std::array<pollfd, 2> files{pollfd{signals_.file(), POLLIN, 0},
                                  pollfd{lost_ ? -1 : loss_.file(), POLLIN, 0}};
      poll(files.data(), files.size(), lost_ ? 10 : -1);
      if (files[1].revents != 0) begin_end();
      signalfd_siginfo signal{};
      while (signals_.next(signal)) pass_on(signal);
    }
  }

  [[nodiscard]] bool lost() const { return lost_; }

 private:
  void begin_end() {
    lost_ = true;
    kill_at_ = BootClock::now() + time_to_end(grace_, lease_.ttl());
    child_.signal_all(SIGTERM);
    child_.signal_all(SIGCONT);  // a stopped process would not hear of it
  }

  void pass_on(const signalfd_siginfo& signal) {
    const int number = static_cast<int>(signal.ssi_signo);
    if (number == SIGCHLD) return;
    if (!from_terminal(signal)) child_.signal(number);
    if (number != SIGTSTP) return;
    // A stopped baton does not renew. The command is stopped as well, so nobody works under a lock
    // that runs out; if it has when we are continued, the keeper notices and we end it. SIGTSTP
    // alone is not enough: a command may ignore it, and the kernel does for groups without a shell.
    std::this_thread::sleep_for(kTimeToTidyTheTerminal);
    child_.signal_all(SIGSTOP);
    raise(SIGSTOP);
    if (lease_.valid()) child_.signal_all(SIGCONT);
  }

  Child& child_;
  const Signals& signals_;
  const Lease& lease_;
  Millis grace_;
  LossEvent loss_;
  bool lost_ = false;
  bool killing_ = false;
  Instant kill_at_{};
};

// Never BATON_STORE: it may hold a password that the command has no business with.
std::vector<std::string> environment_of(const Lease& lease) {
  return {"BATON_NAME=" + lease.key(), "BATON_TOKEN=" + std::to_string(lease.token()),
          "BATON_GRANT=" + to_string(lease.grant()),
          "BATON_MODE=" + std::string(long_name(lease.mode()))};
}

Error lost_error(const std::string& name, const std::string& why) {
  return {.code = Code::lost, .message = "lost the lock " + name + " (" + why + ")"};
}

// The command has ended while we trusted the lock. Whether the store agrees, the release tells.
int give_back(Context& context, Lease& lease, const std::string& name, int code) {
  const auto released = lease.release();
  if (released) return code;
  if (released.error().code == Code::lost) {
    Error error = lost_error(name, released.error().message);
    error.message += fmt::format(" before the command ended with {}", code);
    context.out.error(error);
    return exit_code::lost;
  }
  context.out.warning(fmt::format("could not release {} ({}); it ends by itself within {}", name,
                                  released.error().message, about(lease.ttl())));
  return code;
}

int supervise(Context& context, Lease& lease, Child& child, const Signals& signals,
              const Plan& plan) {
  const std::string name = print_path(plan.what.name);
  int code = 0;
  bool lost = false;
  {
    Supervisor supervisor(child, signals, lease, plan.grace);
    code = supervisor.wait();
    lost = supervisor.lost();
  }
  if (!lost) return give_back(context, lease, name, code);
  Error error = lost_error(name, lease.why_lost());
  error.message += "; the command was ended";
  (void)lease.release();  // acknowledges a break, so that the next one need not wait for the TTL
  context.out.error(error);
  return exit_code::lost;
}

// Who is in the way is worth a second look: "timed out" alone leaves nothing to do.
Error explain_timeout(LockClient& locks, const Plan& plan, Error error) {
  const std::string name = print_path(plan.what.name);
  error.message =
      fmt::format("{} was not free within {}", name, policy::print_duration(plan.options.wait));
  const auto info = locks.get(plan.what.name);
  if (info && !info->holders.empty()) {
    const auto& holder = info->holders.front();
    error.message += fmt::format("; held by {} for {}, {} waiting", holder.owner,
                                 about(holder.held_for), info->waiting);
  }
  return error;
}

int cannot_start(Context& context, const std::string& command, int code) {
  const bool missing = code == exit_code::not_found;
  context.out.error(
      missing ? "not_found" : "cannot_execute",
      fmt::format("{}: {}", command,
                  missing ? "command not found; give a path or check PATH" : "not executable"));
  return code;
}

}  // namespace

Result<int> run(Context& context, const RunArguments& arguments) {
  auto settings = resolve_settings(context.given);
  if (!settings) return settings.error();
  auto plan = make_plan(arguments, *settings);
  if (!plan) return plan.error();
  if (arguments.command.empty()) {
    return bad_request("say what to run: baton run " + arguments.name + " -- COMMAND…");
  }
  const Program program = find_program(arguments.command.front());
  if (program.exit_code != 0) {
    return cannot_start(context, arguments.command.front(), program.exit_code);
  }

  const Signals signals;
  StopOnSignal waiting(signals);
  auto locks = open(settings->store, {.owner = settings->owner});
  if (!locks) return locks.error();
  waiting.ask_politely();
  plan->options.stop = waiting.token();
  auto lease = locks->acquire(plan->what.name, plan->options);
  const int stopped_by = waiting.finish();
  if (stopped_by != 0) return exit_code::by_signal + stopped_by;
  if (!lease && lease.error().code == Code::timed_out) {
    return explain_timeout(*locks, *plan, lease.error());
  }
  if (!lease) return lease.error();

  int exec_error = 0;
  auto child = Child::start(program.path, arguments.command, environment_of(*lease),
                            signals.mask_before(), exec_error);
  if (!child) {
    if (exec_error == 0) return child.error();
    return cannot_start(context, arguments.command.front(),
                        exec_error == ENOENT ? exit_code::not_found : exit_code::cannot_execute);
  }
  return supervise(context, *lease, *child, signals, *plan);
}

}  // namespace baton::cli
