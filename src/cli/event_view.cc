#include "cli/event_view.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iostream>

#include <fmt/format.h>

#include "baton/event.h"
#include "cli/arguments.h"
#include "cli/open_locks.h"
#include "cli/remedy.h"
#include "node/wall_time.h"

namespace baton::cli {
namespace {

// A filter may read the whole of a large table.
constexpr Millis kStatementLimit{120'000};

// A change of all events has to be asked for.
Result<void> check_needs_filter(const EventArguments& arguments, const outbox::EventFilter& filter,
                                const std::string& verb) {
  if (arguments.all && !filter.ids.empty()) {
    return bad_request("--all and ids exclude each other");
  }
  outbox::EventFilter chosen = filter;
  chosen.consumer.clear();  // says whose, not which
  if (!chosen.empty() || arguments.all) return {};
  return bad_request("say which events to " + verb + ": their ids, a filter, or --all");
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string in_upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string shown_time(std::int64_t millis) { return node::print_time(node::from_millis(millis)); }

std::string shown_next(const outbox::EventRow& row) {
  if (row.held) return "held";
  if (!row.next_retry_ms) return "-";
  const Millis left(*row.next_retry_ms - row.now_ms);
  return left <= Millis(0) ? "now" : "in " + about(left);
}

std::string events(std::int64_t count) {
  return counted(static_cast<std::uint64_t>(count), "event");
}

// True for yes. At the end of the input nobody has said so.
bool asked(const std::string& question) {
  fmt::print(stderr, "{} [y/N] ", question);
  std::fflush(stderr);
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

void report(const Context& context, const Change& change, const outbox::EventCount& count,
            std::int64_t changed, bool dry_run) {
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("matched", count.count).field("changed", changed);
    json.field("dry_run", dry_run);
    write_groups(json, count);
    json.end_object();
    context.out.line(json.text());
    return;
  }
  if (dry_run) {
    context.out.line(events(count.count) + " " + change.would);
    return;
  }
  context.out.line(events(changed) + " " + change.did);
  if (changed < count.count) {
    context.out.warning(
        fmt::format("{} had changed meanwhile, or somebody is changing them; look again",
                    events(count.count - changed)));
  }
}

}  // namespace

Result<void> check_database(const std::string& url) {
  if (auto ok = check_password(url); !ok) return ok;
  const auto scheme = url.substr(0, url.find(':'));
  if (scheme != "sqlite" && scheme != "postgres" && scheme != "postgresql") {
    return Error{.code = Code::bad_url,
                 .message = "--database: write sqlite:PATH or postgres://user@host/database"};
  }
  return {};
}

Result<std::unique_ptr<sql::Connection>> open_database(const Context& context,
                                                       const std::string& url) {
  if (auto ok = check_database(url); !ok) return ok.error();
  const OpenProgress progress(context.out, url, open_timeout());
  return sql::Connection::open(
      url, {.application = "baton", .create = false, .statement_timeout = kStatementLimit},
      BootClock::now() + open_timeout());
}

Result<Millis> parse_age(std::string_view option, std::string_view text) {
  if (text.size() > 1 && text.back() == 'd') {
    constexpr std::int64_t kMostDays = 36'500;
    std::int64_t days = 0;
    const auto digits = text.substr(0, text.size() - 1);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), days);
    if (problem == std::errc{} && end == digits.data() + digits.size() && days >= 0 &&
        days <= kMostDays) {
      return Millis(std::chrono::hours(24 * days));
    }
  }
  auto time = parse_duration_argument(option, text);
  if (!time) time.error().message += "; or days, as 3d";
  return time;
}

Result<void> check_statuses(const EventArguments& arguments,
                            std::initializer_list<std::string_view> known) {
  for (const auto& status : arguments.statuses) {
    if (std::find(known.begin(), known.end(), in_upper_case(status)) != known.end()) continue;
    return bad_request(fmt::format("no event here has the status '{}'; there are {}", status,
                                   fmt::join(known, ", ")));
  }
  return {};
}

Result<outbox::EventFilter> parse_filter(const EventArguments& arguments) {
  outbox::EventFilter filter{.type = arguments.type,
                             .aggregate = arguments.aggregate,
                             .error = arguments.error,
                             .consumer = arguments.consumer};
  for (const auto& status : arguments.statuses) {
    filter.statuses.push_back(in_upper_case(status));
  }
  for (const auto& id : arguments.ids) {
    filter.ids.push_back(in_lower_case(id));
    if (!is_event_id(filter.ids.back())) {
      return bad_request("'" + id + "' is not the id of an event, which is a UUID");
    }
  }
  if (!arguments.older_than.empty()) {
    auto age = parse_age("--older-than", arguments.older_than);
    if (!age) return age.error();
    filter.older_than = *age;
  }
  return filter;
}

Result<outbox::EventPage> parse_page(const EventArguments& arguments) {
  if (arguments.limit == 0 || arguments.limit > 10'000) {
    return bad_request("--limit: from 1 to 10000");
  }
  outbox::EventPage page{.limit = static_cast<std::int64_t>(arguments.limit)};
  if (!arguments.after.empty()) {
    const auto& text = arguments.after;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), page.after);
    if (problem != std::errc{} || end != text.data() + text.size()) {
      return bad_request("--after: '" + text + "' is not a position, as list shows it");
    }
  }
  return page;
}

void write_json(JsonWriter& json, const outbox::EventRow& row, bool with_payload) {
  json.begin_object().field("id", row.id).field("position", row.position);
  if (!row.consumer.empty()) json.field("consumer", row.consumer);
  json.field("status", row.status).field("attempts", row.attempts).field("held", row.held);
  json.key("next_retry");
  row.next_retry_ms ? json.value(shown_time(*row.next_retry_ms)) : json.null();
  json.field("last_error", row.error).field("created", shown_time(row.created_ms));
  json.field("age_ms", row.age().count()).key("sent");
  row.settled_ms ? json.value(shown_time(*row.settled_ms)) : json.null();
  json.field("type", row.type).field("aggregate_type", row.aggregate_type);
  json.field("aggregate", row.aggregate).field("exchange", row.exchange);
  json.field("routing_key", row.routing_key).field("version", row.version);
  json.field("correlation_id", row.correlation_id).field("causation_id", row.causation_id);
  json.field("traceparent", row.traceparent);
  if (with_payload) json.field("headers", row.headers).field("payload", row.payload);
  json.end_object();
}

void show_events(const Context& context, const std::vector<outbox::EventRow>& rows,
                 const outbox::EventPage& page) {
  const bool more = static_cast<std::int64_t>(rows.size()) == page.limit;
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("events").begin_array();
    for (const auto& row : rows) write_json(json, row, false);
    json.end_array().key("next");
    more ? json.value(rows.back().position) : json.null();
    json.end_object();
    context.out.line(json.text());
    return;
  }
  if (rows.empty()) {
    context.out.line("no events match");
    return;
  }
  const bool consumers =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.consumer.empty(); });
  std::vector<std::string> header{"ID",        "STATUS",   "AGE",  "TYPE",
                                  "AGGREGATE", "ATTEMPTS", "NEXT", "ERROR"};
  if (consumers) header.insert(header.begin() + 1, "CONSUMER");
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) {
    cells.push_back({row.id, row.status, about(row.age()), row.type, row.aggregate,
                     std::to_string(row.attempts), shown_next(row), or_dash(row.error)});
    if (consumers) cells.back().insert(cells.back().begin() + 1, row.consumer);
  }
  context.out.table(header, cells, 0);
  if (more) {
    context.out.warning(fmt::format("there may be more; go on with --after {}, or raise --limit",
                                    rows.back().position));
  }
}

void show_event(const Context& context, const outbox::EventRow& row) {
  if (context.out.json()) {
    JsonWriter json;
    write_json(json, row, true);
    context.out.line(json.text());
    return;
  }
  std::vector<std::vector<std::string>> rows{{"event", row.id}};
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, value});
  };
  add("consumer", row.consumer);
  add("status", row.status + (row.held ? ", held behind an earlier event of its aggregate" : ""));
  add("attempts", std::to_string(row.attempts));
  if (row.next_retry_ms) add("next attempt", shown_next(row));
  add("error", row.error);
  add("added", fmt::format("{}, {} ago", shown_time(row.created_ms), about(row.age())));
  if (row.settled_ms) add("sent", shown_time(*row.settled_ms));
  add("position", std::to_string(row.position));
  add("type", row.type);
  add("version", std::to_string(row.version));
  add("aggregate", row.aggregate);
  add("aggregate type", row.aggregate_type);
  add("exchange", row.exchange);
  add("routing key", row.routing_key);
  add("correlation", row.correlation_id);
  add("causation", row.causation_id);
  add("traceparent", row.traceparent);
  add("headers", row.headers == "{}" ? "" : row.headers);
  context.out.table({"", ""}, rows);
  // Whole, also where the terminal is narrow.
  context.out.line("");
  context.out.line(printable(row.raw.empty() ? row.payload : row.raw));
}

void write_groups(JsonWriter& json, const outbox::EventCount& count) {
  json.key("groups").begin_array();
  for (const auto& group : count.groups) {
    json.begin_object().field("status", group.status).field("last_error", group.error);
    if (!group.consumer.empty()) json.field("consumer", group.consumer);
    json.field("count", group.count).field("oldest_ms", group.oldest.count()).end_object();
  }
  json.end_array();
}

void show_groups(const Context& context, const outbox::EventCount& count) {
  if (count.groups.empty()) return;
  const bool consumers = !count.groups.front().consumer.empty();
  std::vector<std::string> header{"EVENTS", "STATUS", "OLDEST", "ERROR"};
  if (consumers) header.insert(header.begin() + 1, "CONSUMER");
  std::vector<std::vector<std::string>> rows;
  std::int64_t shown = 0;
  for (const auto& group : count.groups) {
    shown += group.count;
    rows.push_back(
        {std::to_string(group.count), group.status, about(group.oldest), or_dash(group.error)});
    if (consumers) rows.back().insert(rows.back().begin() + 1, group.consumer);
  }
  context.out.table(header, rows);
  if (shown < count.count) {
    context.out.line(fmt::format("… and {} with other errors", events(count.count - shown)));
  }
}

Result<bool> confirmed(const Context& context, bool yes, const std::string& would,
                       const std::string& question) {
  if (yes) return true;
  if (context.out.json() || isatty(STDIN_FILENO) != 1) {
    return bad_request(would + ": add --yes to do it");
  }
  context.out.line(printable(would));
  if (asked(printable(question))) return true;
  context.out.line("nothing was changed");
  return false;
}

Result<int> change_events(Context& context, const EventArguments& arguments, const Change& change) {
  auto filter = parse_filter(arguments);
  if (!filter) return filter.error();
  if (auto ok = check_needs_filter(arguments, *filter, change.verb); !ok) return ok.error();
  const auto count = change.count();
  if (!count) return count.error();
  if (count->count == 0 || arguments.dry_run) {
    if (!context.out.json()) show_groups(context, *count);
    report(context, change, *count, 0, arguments.dry_run);
    return exit_code::ok;
  }
  if (!arguments.yes) {
    const std::string would = events(count->count) + " " + change.would;
    if (context.out.json() || isatty(STDIN_FILENO) != 1) {
      return bad_request(would + ": add --yes to do it, or --dry-run to see which");
    }
    show_groups(context, *count);
    if (!change.warning.empty()) context.out.warning(change.warning);
    if (!asked(fmt::format("{} {}?", change.verb, events(count->count)))) {
      context.out.line("nothing was changed");
      return exit_code::ok;
    }
  }
  const auto changed = change.apply(*count);
  if (!changed) return changed.error();
  report(context, change, *count, *changed, false);
  return exit_code::ok;
}

}  // namespace baton::cli
