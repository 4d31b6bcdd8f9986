// baton run: a command under a lock.

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/json_writer.h"
#include "cli/lock_options.h"
#include "cli/open_client.h"
#include "cli/open_timeout.h"
#include "cli/signals.h"
#include "cli/store_wait.h"
#include "cli/supervisor.h"
#include "cli/wait_progress.h"

namespace baton::cli {
namespace {

struct Plan {
  NameArgument what;
  AcquireOptions options;
  Millis wait{0};  // as asked for; what is left of it once the store is open is in the options
  Millis grace{0};
};

Result<Plan> make_plan(const RunArguments& arguments, const Settings& settings) {
  Plan plan;
  auto name = parse_name(arguments.name, arguments.predicate, settings.region);
  if (!name) return name.error();
  plan.what = std::move(*name);
  auto options = lock_options(arguments, plan.what.mode);
  if (!options) return options.error();
  plan.options = std::move(*options);
  plan.wait = plan.options.wait;
  auto grace = parse_duration_argument("--grace", arguments.grace);
  if (!grace) return grace.error();
  plan.grace = *grace;
  return plan;
}

Error lost_error(const std::string& name, const std::string& why) {
  return {.code = Code::lost, .message = "lost the lock " + name + " (" + why + ")"};
}

void warn(Context& context, const std::string& message) {
  JsonWriter json;
  json.begin_object().field("event", "warning").field("message", message).end_object();
  context.out.event("warning: " + message, json.text());
}

// The command has ended while we trusted the lock; the release tells whether the store agrees.
// `kept_until`: when its at-least-for time ends, which counts also if the release fails.
int give_back(Context& context, Lease& lease, const std::string& name, Instant kept_until,
              int code) {
  const auto released = lease.release();
  if (released) return code;
  if (released.error().code == Code::lost) {
    Error error = lost_error(name, released.error().message);
    error.message += fmt::format(" before the command ended with {}", code);
    context.out.error(error);
    return exit_code::lost;
  }
  const Millis ends_within = std::max(lease.ttl(), left_until(kept_until));
  warn(context, fmt::format("could not release {} ({}); it ends by itself within {}", name,
                            released.error().message, about(ends_within)));
  return code;
}

Result<int> supervise(Context& context, Lease& lease, Child& child, const Signals& signals,
                      const Plan& plan, const std::string& command) {
  const std::string name = print_path(plan.what.name);
  const Instant kept_until = BootClock::now() + plan.options.at_least_for;
  int code = 0;
  bool lost = false;
  bool left_behind = false;
  {
    Supervisor supervisor(child, signals, lease, lease.lost(), plan.grace,
                          [&](const std::string& message) { warn(context, message); });
    int exec_error = 0;
    if (auto started = supervisor.start(environment_of(lease), exec_error); !started) {
      if (started.error().code == Code::lost) {
        (void)lease.release();
        context.out.error(lost_error(name, started.error().message));
        return exit_code::lost;
      }
      if (exec_error == 0) return started.error();
      return cannot_start(context, command,
                          exec_error == ENOENT ? exit_code::not_found : exit_code::cannot_execute);
    }
    code = supervisor.wait();
    lost = supervisor.lost();
    left_behind = supervisor.left_behind();
  }
  if (!lost) return give_back(context, lease, name, kept_until, code);
  const std::string why = lease.why_lost();
  Error error = lost_error(name, why.empty() ? "baton stood still for too long" : why);
  error.message += left_behind ? "; the command could not be ended, or not all that it started"
                               : "; the command was ended";
  (void)lease.release();  // acknowledges a break, so that the next one need not wait for the TTL
  context.out.error(error);
  return exit_code::lost;
}

// Takes the lock, waiting for it as long as the plan says.
Result<Lease> acquire(Context& context, LockClient& locks, const Plan& plan) {
  std::optional<WaitProgress> progress;
  if (plan.options.wait > Millis(0)) progress.emplace(context.out, locks, plan.what.name);
  return locks.acquire(plan.what.name, plan.options);
}

Result<int> not_acquired(Context& context, LockClient& locks, const Plan& plan,
                         const RunArguments& arguments, const Error& error) {
  if (error.code != Code::busy && error.code != Code::timed_out) return error;
  if (!context.out.quiet()) {
    context.out.error(error.code == Code::busy
                          ? error
                          : explain_timeout(locks, {plan.what.name}, plan.wait, error));
  }
  return arguments.busy_exit_code;
}

}  // namespace

Result<int> run(Context& context, const RunArguments& arguments) {
  if (arguments.quiet) context.out.be_quiet();
  auto settings = resolve_settings(context);
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

  auto child = Child::prepare(
      {program.path, arguments.command, grace_if_killed(settings->store, plan->grace)});
  if (!child) return child.error();
  const Signals signals;
  StopOnSignal waiting(signals);
  const Instant wait_until = BootClock::now() + plan->wait;
  StoreWait store_wait(context.out, wait_until);
  const bool waits = plan->wait > Millis(0);
  auto opened = open_client(*settings, arguments.metrics, context.out, std::ref(store_wait),
                            waits ? std::optional(wait_until) : std::nullopt);
  if (!opened) return opened.error();
  LockClient& locks = opened->locks;
  waiting.ask_politely();
  plan->options.stop = waiting.token();
  // Never 0, so that a wait that is over is told as one.
  if (waits) plan->options.wait = std::max(Millis(1), left_until(wait_until));
  auto lease = acquire(context, locks, *plan);
  const int stopped_by = waiting.finish();
  if (stopped_by != 0) return exit_code::by_signal + stopped_by;
  if (!lease) return not_acquired(context, locks, *plan, arguments, lease.error());

  return supervise(context, *lease, **child, signals, *plan, arguments.command.front());
}

}  // namespace baton::cli
