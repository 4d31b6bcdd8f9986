// baton outbox: the events that a service has written and a relay is to publish.

#include <cstdio>
#include <thread>

#include <fmt/core.h>

#include "baton/outbox.h"
#include "cli/arguments.h"
#include "cli/event_view.h"
#include "outbox/clean.h"
#include "outbox/health.h"
#include "outbox/outbox_table.h"

namespace baton::cli {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

Result<void> install(sql::Connection& connection) {
#ifdef BATON_HAS_STORE_POSTGRES
  if (connection.kind() == sql::Kind::postgres) return install_outbox(connection.postgres());
#endif
#ifdef BATON_HAS_STORE_SQLITE
  if (connection.kind() == sql::Kind::sqlite) return install_outbox(connection.sqlite());
#endif
  return bad_request(
      "this baton was built without that database: build it with sqlite and postgres in "
      "BATON_STORES");
}

void write_pile(JsonWriter& json, std::string_view name, const outbox::Pile& pile) {
  json.key(name).begin_object().field("count", pile.count);
  json.field("oldest_ms", pile.oldest.count()).end_object();
}

std::string in_json(const outbox::Health& health, const outbox::Verdict& verdict) {
  JsonWriter json;
  json.begin_object().field("stuck", verdict.stuck).field("why", verdict.why);
  write_pile(json, "waiting", health.waiting);
  write_pile(json, "retrying", health.retrying);
  write_pile(json, "held", health.held);
  write_pile(json, "failed", health.failed);
  json.field("held_by_failed", health.held_by_failed).field("last_error", health.error);
  json.field("sent", health.sent).field("estimated", health.estimated).key("discarded");
  health.discarded ? json.value(*health.discarded) : json.null();
  json.key("lanes").begin_array();
  for (const auto& lane : health.lanes) {
    json.begin_object().field("lane", lane.lane).field("waiting", lane.waiting);
    json.key("read_ago_ms");
    lane.read_ago ? json.value(lane.read_ago->count()) : json.null();
    json.end_object();
  }
  json.end_array().end_object();
  return json.text();
}

void show(const Context& context, const outbox::Health& health, const outbox::Verdict& verdict) {
  const std::string line = printable((verdict.stuck ? "stuck: " : "ok: ") + verdict.why);
  context.out.line(context.out.styled(line, verdict.stuck ? Style::red : Style::plain));
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& status, const std::string& what,
                       const outbox::Pile& pile) {
    rows.push_back(
        {status, what, std::to_string(pile.count), pile.count == 0 ? "-" : about(pile.oldest)});
  };
  add("PENDING", "for the first attempt", health.waiting);
  add("PENDING", "to be tried again", health.retrying);
  add("PENDING", "held behind others", health.held);
  add("FAILED", "all attempts used", health.failed);
  if (health.discarded) {
    rows.push_back({"DISCARDED", "by an operator", std::to_string(*health.discarded), ""});
  }
  rows.push_back(
      {"SENT", "", (health.estimated ? "about " : "") + std::to_string(health.sent), ""});
  context.out.table({"STATUS", "", "EVENTS", "OLDEST"}, rows);
}

// Draws a terminal anew each second; elsewhere it tells what changes.
Result<int> watch(const Context& context, sql::Connection& connection) {
  std::string before;
  while (true) {
    const auto health = outbox::read_health(connection);
    if (!health) return health.error();
    const auto verdict = outbox::judge(*health);
    if (context.out.terminal()) {
      fmt::print("\x1b[H\x1b[J");
      show(context, *health, verdict);
    } else if (before != verdict.why) {
      context.out.json()
          ? context.out.line(in_json(*health, verdict))
          : context.out.line(printable((verdict.stuck ? "stuck: " : "ok: ") + verdict.why));
      before = verdict.why;
    }
    if (std::fflush(stdout) != 0) return exit_code::error;  // said by main.cc
    std::this_thread::sleep_for(kLookEvery);
  }
}

Result<int> change(Context& context, const EventArguments& arguments, outbox::Action action,
                   Change words) {
  namespace status = outbox::status;
  if (auto ok = check_statuses(arguments, {status::pending, status::failed}); !ok) {
    return ok.error();
  }
  auto filter = parse_filter(arguments);
  if (!filter) return filter.error();
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  words.count = [&] { return outbox::count_events(**connection, action, *filter); };
  words.apply = [&](const outbox::EventCount& count) {
    return outbox::change_events(**connection, action, *filter, count.last);
  };
  return change_events(context, arguments, words);
}

}  // namespace

Result<int> outbox_install(Context& context, const EventArguments& arguments) {
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  if (auto ok = install(**connection); !ok) return ok.error();
  context.out.installed("the outbox", arguments.database);
  return exit_code::ok;
}

Result<int> outbox_status(Context& context, const EventArguments& arguments) {
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  if (arguments.watch) return watch(context, **connection);
  const auto health = outbox::read_health(**connection);
  if (!health) return health.error();
  const auto verdict = outbox::judge(*health);
  if (context.out.json()) {
    context.out.line(in_json(*health, verdict));
  } else {
    show(context, *health, verdict);
  }
  return verdict.stuck ? exit_code::error : exit_code::ok;
}

// Without a filter: what is not published yet.
Result<int> outbox_list(Context& context, const EventArguments& arguments) {
  namespace status = outbox::status;
  if (auto ok = check_statuses(arguments,
                               {status::pending, status::sent, status::failed, status::discarded});
      !ok) {
    return ok.error();
  }
  auto filter = parse_filter(arguments);
  if (!filter) return filter.error();
  if (filter->statuses.empty() && filter->ids.empty() && !arguments.all) {
    filter->statuses = {"PENDING", "FAILED"};
  }
  auto page = parse_page(arguments);
  if (!page) return page.error();
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  const auto rows = outbox::list_events(**connection, outbox::outbox_events(), *filter, *page);
  if (!rows) return rows.error();
  show_events(context, *rows, *page);
  return exit_code::ok;
}

Result<int> outbox_show(Context& context, const EventArguments& arguments) {
  EventArguments by_id;
  by_id.ids = {arguments.id};
  auto filter = parse_filter(by_id);
  if (!filter) return filter.error();
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  const auto rows =
      outbox::list_events(**connection, outbox::outbox_events(), *filter, {.with_payload = true});
  if (!rows) return rows.error();
  if (rows->empty()) {
    return bad_request("this outbox has no event " + arguments.id +
                       "; it may have been sent and cleaned away");
  }
  show_event(context, rows->back());
  return exit_code::ok;
}

Result<int> outbox_retry(Context& context, const EventArguments& arguments) {
  return change(context, arguments, outbox::Action::retry,
                {.verb = "retry",
                 .would = "would be tried again at once",
                 .did = "will be tried again at once"});
}

Result<int> outbox_discard(Context& context, const EventArguments& arguments) {
  return change(context, arguments, outbox::Action::discard,
                {.verb = "discard", .would = "would be discarded", .did = "discarded"});
}

Result<int> outbox_clean(Context& context, const EventArguments& arguments) {
  const auto keep = parse_age("--keep", arguments.keep);
  if (!keep) return keep.error();
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  outbox::Cleaned all;
  for (bool more = true; more;) {
    auto cleaned = outbox::clean(**connection, {.retention = *keep});
    if (!cleaned) return cleaned.error();
    more = cleaned->more;
    all.removed += cleaned->removed;
    all.moved += cleaned->moved;
    all.discarded += cleaned->discarded;
    all.postponed = std::move(cleaned->postponed);
  }
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("removed", all.removed).field("moved", all.moved);
    json.field("discarded", all.discarded).key("postponed").begin_array();
    for (const auto& why : all.postponed) json.value(why);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  context.out.line(
      fmt::format("{} removed", counted(static_cast<std::uint64_t>(all.removed), "event")));
  if (all.moved > 0) {
    context.out.line(fmt::format("{} not published yet, moved on",
                                 counted(static_cast<std::uint64_t>(all.moved), "event")));
  }
  if (all.discarded > 0) {
    context.out.line(fmt::format("{} discarded: a newer event has its id",
                                 counted(static_cast<std::uint64_t>(all.discarded), "event")));
  }
  for (const auto& why : all.postponed) context.out.warning(why + "; the next clean tries again");
  return exit_code::ok;
}

}  // namespace baton::cli
