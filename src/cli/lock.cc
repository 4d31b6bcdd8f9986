// baton lock: find, show, break. Counting them is in stats.cc.

#include <unistd.h>

#include <algorithm>
#include <thread>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/lock_view.h"

namespace baton::cli {
namespace {

constexpr Millis kLookEvery{200};
constexpr std::string_view kNotWaitedFor =
    "the holder was not waited for and may still be writing; only a fence on the data stops it";

Result<LockClient> connect(const Settings& settings) {
  return open(settings.store, {.owner = settings.owner});
}

std::string in(Millis time) { return "in " + about(time); }

bool asked_for(const Query& query, const auto& who) {
  return (query.predicate.empty() || who.predicate == query.predicate) &&
         (!query.mode || who.mode == *query.mode) &&
         (query.owner.empty() || who.owner == query.owner);
}

// One row a holder that was asked for, and one a waiter where only waiters were.
void add_rows(const Query& query, const LockInfo& info,
              std::vector<std::vector<std::string>>& rows) {
  const std::string name = shown_name(info.key);
  const std::string waiting = info.waiting > 0 ? std::to_string(info.waiting) : "-";
  bool any = false;
  for (const auto& holder : info.holders) {
    if (!asked_for(query, holder)) continue;
    any = true;
    rows.push_back({name, std::string(long_name(holder.mode)), holder.predicate, holder.owner,
                    std::to_string(holder.token), about(holder.held_for), in(holder.expires_in),
                    waiting, shown_state(holder)});
  }
  if (any) return;
  for (const auto& waiter : info.waiters) {
    if (!asked_for(query, waiter)) continue;
    rows.push_back({name, std::string(long_name(waiter.mode)), waiter.predicate, waiter.owner, "-",
                    "-", "-", waiting, "waiting"});
  }
}

// The same rules for a path of resources as for a name, so that %2F works here too.
Result<std::vector<std::string>> parse_resources(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts) {
    auto path = parse_path("x/" + text);
    if (!path) return path.error();
    out.insert(out.end(), path->resources.begin(), path->resources.end());
  }
  return out;
}

Result<Query> make_query(const LockFindArguments& arguments, const Settings& settings) {
  Query query;
  query.region = settings.region;
  query.subject = arguments.subject;
  query.predicate = arguments.predicate;
  query.owner = arguments.holder;
  query.limit = arguments.limit;
  if (arguments.limit == 0 || arguments.limit > 100'000) {
    return bad_request("--limit: from 1 to 100000");
  }
  auto resources = parse_resources(arguments.resources);
  if (!resources) return resources.error();
  query.resources = std::move(*resources);
  auto mode = parse_mode_argument(arguments.mode);
  if (!mode) return mode.error();
  query.mode = *mode;
  for (const auto* text : {&query.region, &query.subject, &query.predicate}) {
    if (text->empty()) continue;
    if (auto ok = validate(LockName{.subject = *text}); !ok) return ok.error();
  }
  return query;
}

std::string summary(const LockInfo& info) {
  if (info.holders.empty() && info.waiting == 0) return shown_name(info.key) + " is free";
  const std::size_t held = info.holders.size();
  return fmt::format("{}: {} holder{}, {} waiting", shown_name(info.key), held,
                     held == 1 ? "" : "s", info.waiting);
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
                              const std::vector<HolderInfo>& hit, std::optional<Millis> timeout) {
  const Instant start = BootClock::now();
  while (true) {
    auto info = locks.get(name);
    if (!info) return info.error();
    const auto left = still_there(*info, hit);
    if (left.empty()) break;
    const auto& slowest = *std::max_element(
        left.begin(), left.end(),
        [](const HolderInfo& a, const HolderInfo& b) { return a.expires_in < b.expires_in; });
    if (timeout && BootClock::now() - start >= *timeout) {
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

Result<int> lock_find(Context& context, const LockFindArguments& arguments) {
  auto settings = resolve_settings(context.given);
  if (!settings) return settings.error();
  auto query = make_query(arguments, *settings);
  if (!query) return query.error();
  auto locks = connect(*settings);
  if (!locks) return locks.error();
  auto page = locks->find(*query);
  if (!page) return page.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("locks").begin_array();
    for (const auto& info : page->items) write_json(json, info);
    json.end_array().field("more", !page->next.empty()).end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& info : page->items) add_rows(*query, info, rows);
  if (rows.empty()) {
    context.out.line("no locks match");
    return exit_code::ok;
  }
  context.out.table(
      {"NAME", "MODE", "PREDICATE", "OWNER", "TOKEN", "HELD", "EXPIRES", "WAITING", "STATE"}, rows);
  if (!page->next.empty()) {
    context.out.warning(
        fmt::format("only the first {} names are shown; narrow the search or raise "
                    "--limit",
                    page->items.size()));
  }
  return exit_code::ok;
}

Result<int> lock_show(Context& context, const LockShowArguments& arguments) {
  auto settings = resolve_settings(context.given);
  if (!settings) return settings.error();
  auto what = parse_name(arguments.name, arguments.predicate, settings->region);
  if (!what) return what.error();
  auto locks = connect(*settings);
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
  auto settings = resolve_settings(context.given);
  if (!settings) return settings.error();
  auto what = parse_name(arguments.name, arguments.predicate, settings->region);
  if (!what) return what.error();
  std::optional<Millis> timeout;
  if (!arguments.timeout.empty()) {
    auto parsed = parse_duration_argument("--timeout", arguments.timeout);
    if (!parsed) return parsed.error();
    timeout = *parsed;
  }
  auto locks = connect(*settings);
  if (!locks) return locks.error();
  auto hit =
      locks->break_lock(what->name, {.reason = arguments.reason, .immediately = arguments.now});
  if (!hit) return hit.error();
  if (!arguments.now && !hit->empty()) {
    if (auto ok = wait_for_holders(context, *locks, what->name, *hit, timeout); !ok) {
      return ok.error();
    }
  }
  report_break(context, what->name, *hit, arguments.now && !hit->empty() ? kNotWaitedFor : "");
  return exit_code::ok;
}

}  // namespace baton::cli
