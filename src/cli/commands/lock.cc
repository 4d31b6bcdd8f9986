// baton lock: show, break, forget. Finding them is in find.cc, counting them in stats.cc.

#include <unistd.h>

#include <algorithm>
#include <thread>

#include <fmt/core.h>

#include "baton/policy.h"
#include "baton/store_admin.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/lock_view.h"
#include "cli/open_locks.h"
#include "policy/apply_policy.h"

namespace baton::cli {
namespace {

constexpr Millis kLookEvery{200};
constexpr Millis kAskLimit{10'000};
constexpr std::string_view kNotTold =
    "the holder was not told and may still be writing; only a fence on the data stops "
    "it";
constexpr std::string_view kNotWaitedFor =
    "the holder was not waited for and may still be writing; only a fence on the data stops it";

std::string in(Millis time) { return "in " + about(time); }

std::string summary(const LockInfo& info) {
  if (info.holders.empty() && info.waiting == 0) return shown_name(info.key) + " is free";
  return fmt::format("{}: {}, {} waiting", shown_name(info.key),
                     counted(info.holders.size(), "holder"), info.waiting);
}

void show_people(Context& context, const LockInfo& info) {
  if (!info.holders.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& holder : info.holders) {
      std::string metadata;
      for (const auto& [key, value] : holder.metadata) {
        metadata += (metadata.empty() ? "" : ", ") + key + "=" + value;
      }
      rows.push_back({std::string(long_name(holder.mode)), holder.predicate, holder.owner,
                      std::to_string(holder.token), about(holder.held_for), in(holder.expires_in),
                      shown_state(holder), metadata.empty() ? "-" : metadata});
    }
    context.out.line("");
    context.out.table(
        {"MODE", "PREDICATE", "OWNER", "TOKEN", "HELD", "EXPIRES", "STATE", "METADATA"}, rows);
  }
  if (info.waiters.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < info.waiters.size(); ++i) {
    const auto& waiter = info.waiters[i];
    rows.push_back({std::to_string(i + 1), std::string(long_name(waiter.mode)), waiter.predicate,
                    waiter.owner, waiter.converting ? "holds it, wants more" : "waits"});
  }
  context.out.line("");
  context.out.table({"TURN", "MODE", "PREDICATE", "OWNER", "STATE"}, rows);
}

// Those of the holders that were hit that are still there.
std::vector<HolderInfo> still_there(const LockInfo& info, const std::vector<HolderInfo>& hit) {
  std::vector<HolderInfo> left;
  for (const auto& holder : info.holders) {
    if (std::any_of(hit.begin(), hit.end(),
                    [&](const HolderInfo& h) { return h.grant == holder.grant; })) {
      left.push_back(holder);
    }
  }
  return left;
}

// Until each holder has acknowledged or expired; every one does, as a revoked grant is not renewed.
Result<void> wait_for_holders(Context& context, LockClient& locks, const LockName& name,
                              const std::vector<HolderInfo>& hit, std::optional<Instant> limit) {
  while (true) {
    auto info = locks.get(name);
    if (!info) return info.error();
    const auto left = still_there(*info, hit);
    if (left.empty()) break;
    const auto& slowest = *std::max_element(
        left.begin(), left.end(),
        [](const HolderInfo& a, const HolderInfo& b) { return a.expires_in < b.expires_in; });
    if (limit && BootClock::now() >= *limit) {
      context.out.end_progress();
      return Error{
          .code = Code::timed_out,
          .message = fmt::format("{} has not let go of {} yet; it is revoked and ends in "
                                 "{} at the latest, or use --now",
                                 slowest.owner, print_path(name), about(slowest.expires_in)),
          .retryable = true};
    }
    context.out.progress(
        fmt::format("waiting for {} to let go; expires {}", slowest.owner, in(slowest.expires_in)));
    std::this_thread::sleep_for(kLookEvery);
  }
  context.out.end_progress();
  return {};
}

void report_break(Context& context, const LockName& name, const std::vector<HolderInfo>& hit,
                  std::string_view warning) {
  if (!warning.empty()) context.out.warning(warning);
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("name", print_path(name)).key("broken").begin_array();
    for (const auto& holder : hit) write_json(json, holder);
    json.end_array();
    if (!warning.empty()) json.field("warning", warning);
    context.out.line(json.end_object().text());
  } else if (hit.empty()) {
    context.out.line(printable(print_path(name)) + " was held by nobody");
  } else {
    for (const auto& holder : hit) {
      context.out.line(printable(fmt::format("{}: broken, was held by {} with token {}",
                                             print_path(name), holder.owner, holder.token)));
    }
  }
}

}  // namespace

Result<int> lock_show(Context& context, const LockShowArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto what = parse_name(arguments.name, arguments.predicate, settings->region);
  if (!what) return what.error();
  auto locks = open_locks(context, *settings);
  if (!locks) return locks.error();
  auto info = locks->get(what->name);
  if (!info) return info.error();
  if (context.out.json()) {
    JsonWriter json;
    write_json(json, *info);
    context.out.line(json.text());
    return exit_code::ok;
  }
  context.out.line(printable(summary(*info)));
  if (info->note != Note{}) {
    context.out.line(printable(fmt::format("note {}: {}", info->note.ordinal, info->note.text)));
  }
  show_people(context, *info);
  return exit_code::ok;
}

Result<int> lock_break(Context& context, const LockBreakArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto what = parse_name(arguments.name, arguments.predicate, settings->region);
  if (!what) return what.error();
  std::optional<Millis> timeout;
  std::optional<Instant> limit;
  if (!arguments.timeout.empty()) {
    auto parsed = parse_duration_argument("--timeout", arguments.timeout);
    if (!parsed) return parsed.error();
    timeout = *parsed;
    limit = BootClock::now() + *timeout;
  }
  auto locks = open_locks(context, *settings, open_timeout(timeout));
  if (!locks) return locks.error();
  auto hit =
      locks->break_lock(what->name, {.reason = arguments.reason, .immediately = arguments.now});
  if (!hit) return hit.error();
  if (!arguments.now && !hit->empty()) {
    if (auto ok = wait_for_holders(context, *locks, what->name, *hit, limit); !ok) {
      return ok.error();
    }
  }
  report_break(context, what->name, *hit, arguments.now && !hit->empty() ? kNotWaitedFor : "");
  return exit_code::ok;
}

Result<int> lock_forget(Context& context, const LockForgetArguments& arguments) {
  if (!arguments.damaged) {
    return bad_request(
        "only a damaged lock can be forgotten, with --damaged; to take one from its holders, use "
        "baton lock break");
  }
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  std::string key = arguments.name;
  if (!arguments.key) {
    auto what = parse_name(arguments.name, arguments.predicate, settings->region);
    if (!what) return what.error();
    auto store = open_locks_store(context, *settings);
    if (!store) return store.error();
    auto policy = policy::read_policy(**store, BootClock::now() + kAskLimit);
    if (!policy) return policy.error();
    key = key_of(*policy, what->name);
  }
  auto admin = open_locks_admin(context, *settings);
  if (!admin) return admin.error();
  auto forgotten = (*admin)->forget_damaged(key, BootClock::now() + kAskLimit);
  if (!forgotten) return forgotten.error();
  context.out.warning(kNotTold);
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("key", key).field("forgotten", true).field("warning", kNotTold);
    context.out.line(json.end_object().text());
  } else {
    context.out.line(printable(key + ": what the store kept was damaged and is gone"));
  }
  return exit_code::ok;
}

}  // namespace baton::cli
