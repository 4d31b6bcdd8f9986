// baton leader: show, is-me, resign, transfer.

#include <ctime>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "baton/elector.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"
#include "core/bad_request.h"

namespace baton::cli {
namespace {

constexpr Millis kLookEvery{50};
// How long the next leader may take to come for the lock until we say that there is none.
constexpr Millis kNextMayTake{2'000};

struct Place {
  LockName lock;
  LockClient locks;
  std::string owner;  // what was said of who we are
};

Result<Place> open_place(Context& context, const std::string& name,
                         std::optional<Millis> timeout = {}) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto lock = election_lock(name, settings->region.empty() ? kDefaultRegion : settings->region);
  if (!lock) return lock.error();
  auto locks = open_locks(context, *settings, open_timeout(timeout));
  if (!locks) return locks.error();
  return Place{std::move(*lock), std::move(*locks), settings->owner};
}

std::string utc(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void write_json(JsonWriter& json, const std::optional<Leader>& leader) {
  if (!leader) {
    json.null();
    return;
  }
  json.begin_object().field("node", leader->node).field("term", leader->term);
  json.field("since", utc(leader->since)).field("led_for_ms", leader->led_for.count());
  json.field("leaving", leader->leaving).field("candidates", leader->candidates);
  json.field("grant", to_string(leader->grant)).key("metadata").begin_object();
  for (const auto& [key, value] : leader->metadata) json.field(key, value);
  json.end_object().end_object();
}

std::string shown(const Leader& leader) {
  return fmt::format("{} in term {}", leader.node, leader.term);
}

int nobody_leads(Context& context, const std::string& name) {
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("election", name).key("leader").null().end_object();
    context.out.line(json.text());
  } else {
    context.out.line(printable(name) + ": nobody leads");
  }
  return exit_code::busy;
}

// Until the leader that was asked has gone. A revoked lock is not renewed, so it always goes.
Result<void> wait_until_gone(Context& context, Place& place, const Leader& asked, Instant limit) {
  while (true) {
    auto now = leader_of(place.locks, place.lock);
    if (!now) return now.error();
    if (!*now || (*now)->grant != asked.grant) break;
    if (BootClock::now() >= limit) {
      context.out.end_progress();
      return Error{.code = Code::timed_out,
                   .message = asked.node +
                              " has not ended its work yet; it is revoked and leads no "
                              "longer than its TTL",
                   .retryable = true};
    }
    context.out.progress("waiting for " + asked.node + " to end its work");
    std::this_thread::sleep_for(kLookEvery);
  }
  context.out.end_progress();
  return {};
}

Result<std::optional<Leader>> wait_for_next(Place& place) {
  const Instant limit = BootClock::now() + kNextMayTake;
  while (true) {
    auto now = leader_of(place.locks, place.lock);
    const bool known = now && *now && (*now)->term != 0;  // else it is only being handed over
    if (!now || known || BootClock::now() >= limit) return now;
    std::this_thread::sleep_for(kLookEvery);
  }
}

void report(Context& context, const std::string& name, const Leader& before,
            const std::optional<Leader>& after) {
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("election", name).key("before");
    write_json(json, before);
    json.key("leader");
    write_json(json, after);
    json.end_object();
    context.out.line(json.text());
    return;
  }
  context.out.line(printable(
      fmt::format("{}: {} has gone, {}", name, shown(before),
                  after ? "followed by " + shown(*after) : "and nobody has followed it yet")));
}

Result<int> see_it_through(Context& context, const LeaderArguments& arguments, Place& place,
                           const std::optional<Leader>& asked, Instant limit) {
  if (!asked) return nobody_leads(context, arguments.name);
  if (auto ok = wait_until_gone(context, place, *asked, limit); !ok) return ok.error();
  auto next = wait_for_next(place);
  if (!next) return next.error();
  report(context, arguments.name, *asked, *next);
  return exit_code::ok;
}

}  // namespace

Result<int> leader_show(Context& context, const LeaderArguments& arguments) {
  auto place = open_place(context, arguments.name);
  if (!place) return place.error();
  const auto leader = leader_of(place->locks, place->lock);
  if (!leader) return leader.error();
  if (!*leader) return nobody_leads(context, arguments.name);
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("election", arguments.name).key("leader");
    write_json(json, *leader);
    json.end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  const Leader& who = **leader;
  context.out.line(printable(fmt::format("{}: {}, since {} ({}), {} waiting{}", arguments.name,
                                         shown(who), utc(who.since), about(who.led_for),
                                         who.candidates, who.leaving ? "; asked to go" : "")));
  return exit_code::ok;
}

Result<int> leader_is_me(Context& context, const LeaderArguments& arguments) {
  auto place = open_place(context, arguments.name);
  if (!place) return place.error();
  // The default of the owner names this very process, which leads nothing.
  const std::string self = arguments.node.empty() ? place->owner : arguments.node;
  if (self.empty()) {
    return bad_request("say which node this is: --node ID, as `baton elect` was told, or --owner");
  }
  const auto leader = leader_of(place->locks, place->lock);
  if (!leader) return leader.error();
  const bool leads = *leader && (*leader)->node == self && !(*leader)->leaving;
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("election", arguments.name).field("node", self);
    json.field("leads", leads).key("leader");
    write_json(json, *leader);
    json.end_object();
    context.out.line(json.text());
  } else if (*leader) {
    context.out.line(printable(fmt::format("{}: {} leads{}", arguments.name, shown(**leader),
                                           (*leader)->leaving ? "; asked to go" : "")));
  } else {
    context.out.line(printable(arguments.name) + ": nobody leads");
  }
  return leads ? exit_code::ok : exit_code::busy;
}

Result<int> leader_resign(Context& context, const LeaderArguments& arguments) {
  auto timeout = parse_duration_argument("--timeout", arguments.timeout);
  if (!timeout) return timeout.error();
  const Instant limit = BootClock::now() + *timeout;
  auto place = open_place(context, arguments.name, *timeout);
  if (!place) return place.error();
  auto asked = resign_leader(place->locks, place->lock, arguments.reason);
  if (!asked) return asked.error();
  return see_it_through(context, arguments, *place, *asked, limit);
}

Result<int> leader_transfer(Context& context, const LeaderArguments& arguments) {
  auto timeout = parse_duration_argument("--timeout", arguments.timeout);
  if (!timeout) return timeout.error();
  const Instant limit = BootClock::now() + *timeout;
  auto place = open_place(context, arguments.name, *timeout);
  if (!place) return place.error();
  auto asked = transfer_leader(place->locks, place->lock, arguments.node);
  if (!asked) return asked.error();
  return see_it_through(context, arguments, *place, *asked, limit);
}

}  // namespace baton::cli
