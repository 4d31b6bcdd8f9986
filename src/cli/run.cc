// baton run: a command under a lock.

#include <cerrno>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/counted_locks.h"
#include "cli/json_writer.h"
#include "cli/signals.h"
#include "cli/supervisor.h"
#include "policy/duration.h"

namespace baton::cli {
namespace {

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

Error lost_error(const std::string& name, const std::string& why) {
  return {.code = Code::lost, .message = "lost the lock " + name + " (" + why + ")"};
}

void warn(Context& context, const std::string& message) {
  JsonWriter json;
  json.begin_object().field("event", "warning").field("message", message).end_object();
  context.out.event("warning: " + message, json.text());
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
  warn(context, fmt::format("could not release {} ({}); it ends by itself within {}", name,
                            released.error().message, about(lease.ttl())));
  return code;
}

int supervise(Context& context, Lease& lease, Child& child, const Signals& signals,
              const Plan& plan) {
  const std::string name = print_path(plan.what.name);
  int code = 0;
  bool lost = false;
  bool left_behind = false;
  {
    Supervisor supervisor(child, signals, lease, lease.lost(), plan.grace,
                          [&](const std::string& message) { warn(context, message); });
    code = supervisor.wait();
    lost = supervisor.lost();
    left_behind = supervisor.left_behind();
  }
  if (!lost) return give_back(context, lease, name, code);
  Error error = lost_error(name, lease.why_lost());
  error.message += left_behind ? "; the command could not be ended, or not all that it started"
                               : "; the command was ended";
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
  auto opened = open_counted(*settings, arguments.metrics, context.out);
  if (!opened) return opened.error();
  LockClient& locks = opened->locks;
  waiting.ask_politely();
  plan->options.stop = waiting.token();
  auto lease = locks.acquire(plan->what.name, plan->options);
  const int stopped_by = waiting.finish();
  if (stopped_by != 0) return exit_code::by_signal + stopped_by;
  if (!lease && lease.error().code == Code::timed_out) {
    return explain_timeout(locks, *plan, lease.error());
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
