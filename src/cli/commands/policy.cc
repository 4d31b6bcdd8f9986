// baton policy: check, apply, show.

#include <unistd.h>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/file.h"
#include "cli/json_writer.h"
#include "cli/lock_view.h"
#include "cli/open_locks.h"
#include "cli/signals.h"
#include "policy/apply_policy.h"
#include "policy/print_policy.h"
#include "policy/yaml.h"

namespace baton::cli {
namespace {

constexpr Millis kAskLimit{10'000};

Result<Policy> read_policy_file(const std::string& file) {
  auto text = read_file(file, policy::kMaxYamlBytes);
  if (!text) return text.error();
  auto parsed = parse_policy(*text);
  if (parsed) return parsed;
  Error error = parsed.error();
  error.message = (file == "-" ? "standard input" : file) + ": " + error.message;
  return error;
}

std::string owner_of(const Settings& settings) {
  if (!settings.owner.empty()) return settings.owner;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{}:{}", host.data(), getpid());
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) {
    out += (out.empty() ? "" : ", ") + (word.empty() ? "everything" : word);
  }
  return out;
}

// to_stored is the policy's own JSON; it goes out as it is.
void print_policy_json(Context& context, const Policy& policy) {
  context.out.line(to_stored(policy));
}

void show_progress(Output& out, const policy::DrainProgress& progress) {
  std::size_t holders = 0;
  std::size_t waiters = 0;
  for (const auto& info : progress.in_the_way) {
    holders += info.holders.size();
    waiters += info.waiting;
  }
  out.progress(fmt::format("waiting for {} and {} of changed subjects, such as {}",
                           counted(holders, "holder"), counted(waiters, "waiter"),
                           shown_name(progress.in_the_way.front().key)));
}

void report_applied(Context& context, const policy::AppliedPolicy& applied) {
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("version", applied.version).field("unchanged", applied.unchanged);
    json.key("drained").begin_array();
    for (const auto& subject : applied.drained) json.value(subject);
    json.end_array().end_object();
    context.out.line(json.text());
  } else if (applied.unchanged) {
    context.out.line(fmt::format("nothing to do: version {} says the same", applied.version));
  } else {
    context.out.line(fmt::format("version {} is in force", applied.version));
    if (!applied.drained.empty()) {
      context.out.line(printable("conflicts changed for: " + joined(applied.drained)));
    }
    context.out.line("running clients get new locks only after a restart");
  }
}

}  // namespace

Result<int> policy_check(Context& context, const PolicyArguments& arguments) {
  auto policy = read_policy_file(arguments.file);
  if (!policy) return policy.error();
  if (context.out.json()) {
    print_policy_json(context, *policy);
    return exit_code::ok;
  }
  std::size_t predicates = 0;
  for (const auto& [_, subject] : policy->subjects) predicates += subject.predicates.size();
  context.out.line(fmt::format("good: {}, rules for {}, undeclared subjects are {}",
                               counted(policy->subjects.size(), "subject"),
                               counted(predicates, "predicate"),
                               policy->only_declared ? "denied" : "allowed"));
  return exit_code::ok;
}

Result<int> policy_apply(Context& context, const PolicyArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto timeout = parse_duration_argument("--timeout", arguments.timeout);
  if (!timeout) return timeout.error();
  auto wanted = read_policy_file(arguments.file);
  if (!wanted) return wanted.error();

  const Signals signals;
  StopOnSignal stop(signals);
  const Instant limit = BootClock::now() + *timeout;
  auto store = open_locks_store(context, *settings, open_timeout(*timeout));
  if (!store) return store.error();
  stop.ask_politely();
  const policy::ApplyPolicyOptions options{
      .owner = owner_of(*settings),
      .timeout = left_until(limit),
      .replace = arguments.replace,
      .stop = stop.token(),
      .progress = [&](const auto& progress) { show_progress(context.out, progress); }};
  auto applied = policy::apply_policy(**store, std::move(*wanted), options);
  context.out.end_progress();
  if (!applied) return applied.error();
  report_applied(context, *applied);
  return exit_code::ok;
}

Result<int> policy_show(Context& context) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto store = open_locks_store(context, *settings);
  if (!store) return store.error();
  auto policy = policy::read_policy(**store, BootClock::now() + kAskLimit);
  if (!policy) return policy.error();
  if (context.out.json()) {
    print_policy_json(context, *policy);
    return exit_code::ok;
  }
  if (policy->draining) {
    context.out.warning(
        "a change is under way or was interrupted, and nobody can acquire; if no "
        "'baton policy apply' runs, apply a policy again");
  }
  if (policy->version == 0) {
    context.out.line("# no policy: everything is allowed, every subject stands alone");
    return exit_code::ok;
  }
  context.out.line(fmt::format("# version {}", policy->version));
  fmt::print("{}", policy::print_policy(*policy));
  return exit_code::ok;
}

}  // namespace baton::cli
