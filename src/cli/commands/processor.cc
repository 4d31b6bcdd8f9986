// baton processor: the views and publishers of an event log.

#include "baton/processors.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/event_view.h"

namespace baton::cli {
namespace {

constexpr std::chrono::milliseconds kLookEvery{200};
constexpr std::chrono::seconds kTellEvery{5};  // where progress is no line that replaces itself
// An owner says so every 5 s that it is there.
constexpr Millis kGone{15'000};
constexpr std::size_t kBar = 30;

using Admin = std::unique_ptr<ProcessorAdmin>;

Result<Admin> open_admin(const ProcessorArguments& arguments) {
  if (auto ok = check_database(arguments.database); !ok) return ok.error();
  return ProcessorAdmin::open(arguments.database);
}

bool has_owner(const ProcessorState& state) {
  return !state.owner.empty() && state.seen_ago < kGone;
}

std::string shown_owner(const ProcessorState& state) {
  if (state.owner.empty()) return "nobody yet";
  if (!has_owner(state)) return state.owner + ", gone " + about(state.seen_ago);
  return state.owner;
}

// Of what is handled, and of the log, in percent.
int percent(std::int64_t position, std::int64_t head) {
  if (head <= 0) return 100;
  return static_cast<int>(std::clamp<std::int64_t>(position * 100 / head, 0, 100));
}

std::string shown_trouble(const ProcessorState& state) {
  if (!state.stalled_by.empty()) {
    return "stalled for " + about(state.stalled_for) + " by " + state.stalled_by;
  }
  if (!state.rebuild_status.empty() && state.rebuild_status != "FAILED") {
    return fmt::format("rebuild: {}%", percent(state.rebuild_position, state.head));
  }
  if (!state.rebuild_error.empty()) return "rebuild: " + state.rebuild_error;
  return state.last_error.empty() ? "-" : state.last_error;
}

void write_json(JsonWriter& json, const ProcessorState& state) {
  json.begin_object().field("name", state.name).field("kind", state.kind);
  json.field("status", state.status).key("tables").begin_array();
  for (const auto& table : state.tables) json.value(table);
  json.end_array().field("position", state.position).field("head", state.head);
  json.field("lag", state.lag).field("oldest_age_ms", state.oldest_age.count());
  json.field("owner", state.owner).field("owner_token", state.owner_token);
  json.field("owned_for_ms", state.owned_for.count()).field("seen_ago_ms", state.seen_ago.count());
  json.field("attempts", state.attempts).field("last_error", state.last_error);
  json.field("error_position", state.error_position);
  json.field("rebuild_status", state.rebuild_status);
  json.field("rebuild_position", state.rebuild_position);
  json.field("rebuild_error", state.rebuild_error).field("stalled_by", state.stalled_by);
  json.field("stalled_for_ms", state.stalled_for.count()).end_object();
}

Result<ProcessorState> state_of(ProcessorAdmin& admin, const std::string& name) {
  auto states = admin.list(name);
  if (!states) return states.error();
  return std::move(states->front());
}

// Says what has become of it.
Result<int> done(const Context& context, const std::string& name, const std::string& what) {
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("name", name).field("done", what).end_object();
    context.out.line(json.text());
  } else {
    context.out.line(printable(name + " " + what));
  }
  return exit_code::ok;
}

Result<int> change(const Context& context, const ProcessorArguments& arguments,
                   Result<void> (ProcessorAdmin::*verb)(const std::string&),
                   const std::string& what) {
  auto admin = open_admin(arguments);
  if (!admin) return admin.error();
  if (auto ok = (**admin.*verb)(arguments.name); !ok) return ok.error();
  return done(context, arguments.name, what);
}

std::string bar(const ProcessorState& state, Millis passed) {
  const int part = percent(state.rebuild_position, state.head);
  const std::size_t filled = kBar * static_cast<std::size_t>(part) / 100;
  std::string text = fmt::format("rebuilding {} [{}{}] {}%, position {} of {}", state.name,
                                 std::string(filled, '='), std::string(kBar - filled, ' '), part,
                                 state.rebuild_position, state.head);
  if (part > 0 && part < 100 && passed > std::chrono::seconds(2)) {
    text += ", " + about(passed * (100 - part) / part) + " left";
  }
  return text;
}

std::string plain(const ProcessorState& state) {
  return fmt::format("rebuilding {}: {}%, position {} of {}", state.name,
                     percent(state.rebuild_position, state.head), state.rebuild_position,
                     state.head);
}

// Until the owner has exchanged the tables, or has given up.
Result<int> wait_for_rebuild(const Context& context, ProcessorAdmin& admin,
                             const std::string& name) {
  const auto begun = BootClock::now();
  auto tell_at = begun;
  bool warned = false;
  while (true) {
    const auto state = state_of(admin, name);
    if (!state) return state.error();
    if (state->rebuild_status.empty() || state->rebuild_status == "FAILED") {
      context.out.end_progress();
      if (!state->rebuild_error.empty()) {
        context.out.error("error",
                          "the rebuild of " + name +
                              " has failed, and its tables are as before: " + state->rebuild_error);
        return exit_code::error;
      }
      return done(context, name, "is rebuilt");
    }
    if (!has_owner(*state) && !warned) {
      context.out.warning("nobody runs " + name + "; the rebuild begins when somebody does");
      warned = true;
    }
    const auto now = BootClock::now();
    if (context.out.on_terminal()) {
      context.out.progress(bar(*state, std::chrono::duration_cast<Millis>(now - begun)));
    } else if (now >= tell_at) {
      context.out.progress(plain(*state));
      tell_at = now + kTellEvery;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

Result<int> processor_install(Context& context, const ProcessorArguments& arguments) {
  auto admin = open_admin(arguments);
  if (!admin) return admin.error();
  if (auto ok = (*admin)->install(); !ok) return ok.error();
  context.out.installed("the event log", arguments.database);
  return exit_code::ok;
}

Result<int> processor_list(Context& context, const ProcessorArguments& arguments) {
  auto admin = open_admin(arguments);
  if (!admin) return admin.error();
  const auto states = (*admin)->list();
  if (!states) return states.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("processors").begin_array();
    for (const auto& state : *states) write_json(json, state);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  if (states->empty()) {
    context.out.line("no processor has run on this event log");
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& state : *states) {
    rows.push_back({state.name, state.kind, state.status, std::to_string(state.position),
                    std::to_string(state.lag), state.lag == 0 ? "-" : about(state.oldest_age),
                    shown_owner(state), shown_trouble(state)});
  }
  context.out.table({"NAME", "KIND", "STATUS", "POSITION", "LAG", "OLDEST", "OWNER", "TROUBLE"},
                    rows, 0);
  return exit_code::ok;
}

Result<int> processor_show(Context& context, const ProcessorArguments& arguments) {
  auto admin = open_admin(arguments);
  if (!admin) return admin.error();
  const auto state = state_of(**admin, arguments.name);
  if (!state) return state.error();
  if (context.out.json()) {
    JsonWriter json;
    write_json(json, *state);
    context.out.line(json.text());
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows{{"processor", state->name}};
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, value});
  };
  add("kind", state->kind);
  add("status", state->status);
  std::string tables;
  for (const auto& table : state->tables) tables += (tables.empty() ? "" : ", ") + table;
  add("tables", tables);
  add("position", fmt::format("{} of {}", state->position, state->head));
  add("lag", counted(static_cast<std::uint64_t>(state->lag), "event") +
                 (state->lag == 0 ? "" : ", the oldest " + about(state->oldest_age) + " old"));
  add("owner", shown_owner(*state));
  if (!state->owner.empty()) {
    add("token", fmt::format("{}, for {}", state->owner_token, about(state->owned_for)));
  }
  if (!state->last_error.empty()) {
    add("error", state->last_error);
    add("attempts", std::to_string(state->attempts));
  }
  if (!state->rebuild_status.empty()) {
    add("rebuild", fmt::format("{}, position {} of {}", state->rebuild_status,
                               state->rebuild_position, state->head));
  }
  add("rebuild error", state->rebuild_error);
  if (!state->stalled_by.empty()) {
    add("stalled by", state->stalled_by + ", for " + about(state->stalled_for));
  }
  context.out.table({"", ""}, rows);
  return exit_code::ok;
}

Result<int> processor_pause(Context& context, const ProcessorArguments& arguments) {
  return change(context, arguments, &ProcessorAdmin::pause, "is paused");
}

Result<int> processor_resume(Context& context, const ProcessorArguments& arguments) {
  return change(context, arguments, &ProcessorAdmin::resume, "is running");
}

Result<int> processor_reset(Context& context, const ProcessorArguments& arguments) {
  auto admin = open_admin(arguments);
  if (!admin) return admin.error();
  const auto state = state_of(**admin, arguments.name);
  if (!state) return state.error();
  std::string what;
  for (const auto& table : state->tables) what += (what.empty() ? "" : ", ") + table;
  what = state->kind == "publisher" ? "would tell others all events again"
         : what.empty() ? "would handle all events again, on top of what is in its tables"
                        : "would empty " + what + " and handle all events again";
  const auto yes = confirmed(context, arguments.yes, arguments.name + " " + what,
                             "reset " + arguments.name + "?");
  if (!yes) return yes.error();
  if (!*yes) return exit_code::ok;
  if (auto ok = (*admin)->reset(arguments.name); !ok) return ok.error();
  return done(context, arguments.name, "begins with the first event");
}

Result<int> processor_rebuild(Context& context, const ProcessorArguments& arguments) {
  auto admin = open_admin(arguments);
  if (!admin) return admin.error();
  if (auto ok = (*admin)->rebuild(arguments.name); !ok) return ok.error();
  if (arguments.no_wait) return done(context, arguments.name, "will be rebuilt by its owner");
  return wait_for_rebuild(context, **admin, arguments.name);
}

}  // namespace baton::cli
