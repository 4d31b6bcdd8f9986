// baton inbox and baton dlq: the messages that are in trouble at the consumers of a service.

#include <algorithm>
#include <charconv>
#include <thread>

#include <fmt/core.h>

#include "baton/inbox.h"
#include "baton/locks.h"
#include "cli/arguments.h"
#include "cli/event_view.h"
#include "inbox/inbox_table.h"
#include "inbox/operate.h"

namespace baton::cli {
namespace {

constexpr std::int64_t kExportAtOnce = 100;  // a message may have a MiB

Result<void> install(sql::Connection& connection) {
#ifdef BATON_HAS_STORE_POSTGRES
  if (connection.kind() == sql::Kind::postgres) return install_inbox(connection.postgres());
#endif
#ifdef BATON_HAS_STORE_SQLITE
  if (connection.kind() == sql::Kind::sqlite) return install_inbox(connection.sqlite());
#endif
  return bad_request(
      "this baton was built without that database: build it with sqlite and postgres in "
      "BATON_STORES");
}

struct Opened {
  outbox::EventFilter filter;
  std::unique_ptr<sql::Connection> connection;
};

Result<Opened> open_inbox(const Context& context, const EventArguments& arguments) {
  namespace status = inbox::status;
  if (auto ok =
          check_statuses(arguments, {status::retry, status::held, status::dead, status::discarded});
      !ok) {
    return ok.error();
  }
  auto filter = parse_filter(arguments);
  if (!filter) return filter.error();
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  return Opened{std::move(*filter), std::move(*connection)};
}

Result<int> list(Context& context, const EventArguments& arguments,
                 const std::vector<std::string>& statuses) {
  auto page = parse_page(arguments);
  if (!page) return page.error();
  auto opened = open_inbox(context, arguments);
  if (!opened) return opened.error();
  if (opened->filter.statuses.empty() && opened->filter.ids.empty() && !arguments.all) {
    opened->filter.statuses = statuses;
  }
  const auto rows =
      outbox::list_events(*opened->connection, inbox::inbox_events(), opened->filter, *page);
  if (!rows) return rows.error();
  show_events(context, *rows, *page);
  return exit_code::ok;
}

Result<int> show(Context& context, const EventArguments& arguments,
                 const std::vector<std::string>& statuses) {
  EventArguments by_id = arguments;
  by_id.ids = {arguments.id};
  auto opened = open_inbox(context, by_id);
  if (!opened) return opened.error();
  opened->filter.statuses = statuses;
  const auto rows = outbox::list_events(*opened->connection, inbox::inbox_events(), opened->filter,
                                        {.limit = 2, .with_payload = true});
  if (!rows) return rows.error();
  if (rows->empty() && !statuses.empty()) {
    opened->filter.statuses.clear();
    const auto others = outbox::list_events(*opened->connection, inbox::inbox_events(),
                                            opened->filter, {.limit = 1});
    if (!others) return others.error();
    if (!others->empty()) {
      const auto& other = others->front();
      return bad_request("the event " + other.id + " is no dead letter: it is " + other.status +
                         " at " + other.consumer + ", see 'baton inbox show " + other.id + "'");
    }
  }
  if (rows->empty()) {
    return bad_request("the event " + arguments.id + " is in no inbox of " +
                       redact_url(arguments.database) + ": it was handled, or is not known there");
  }
  if (rows->size() > 1) {
    return bad_request("several consumers have this event; say which one with --consumer");
  }
  show_event(context, rows->front());
  return exit_code::ok;
}

// 20/s, or 20.
Result<std::int64_t> parse_rate(const std::string& text) {
  std::string_view digits = text;
  if (digits.ends_with("/s")) digits.remove_suffix(2);
  std::int64_t rate = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), rate);
  if (problem != std::errc{} || end != digits.data() + digits.size() || rate < 1 ||
      rate > 1'000'000) {
    return bad_request("--rate: '" + text + "' is not a rate, as 20/s");
  }
  return rate;
}

// In ten steps a second.
outbox::Pace pace_of(std::int64_t rate) {
  return {.batch = std::clamp<std::int64_t>(rate / 10, 1, 1'000),
          .after_batch = [rate](std::size_t changed) {
            std::this_thread::sleep_for(
                std::chrono::microseconds(1'000'000 * static_cast<std::int64_t>(changed) / rate));
          }};
}

Result<int> change(Context& context, const EventArguments& arguments, inbox::Action action,
                   Change words, const outbox::Pace& pace) {
  auto opened = open_inbox(context, arguments);
  if (!opened) return opened.error();
  words.count = [&] {
    return inbox::count_events(*opened->connection, action, opened->filter, arguments.force);
  };
  words.apply = [&](const outbox::EventCount& count) {
    return inbox::change_events(*opened->connection, action, opened->filter, count.last,
                                arguments.force, pace);
  };
  if (action == inbox::Action::redrive && !arguments.force) {
    const auto with_old = inbox::count_events(*opened->connection, action, opened->filter, true);
    if (!with_old) return with_old.error();
    const auto without = words.count();
    if (!without) return without.error();
    const auto old = with_old->count - without->count;
    if (old > 0) {
      context.out.warning(fmt::format(
          "{} older than the deduplication window of 14 days stay: what they have caused may be "
          "forgotten, so that it would happen again; add --force to redrive them too",
          counted(static_cast<std::uint64_t>(old), "dead letter")));
    }
  }
  return change_events(context, arguments, words);
}

std::string in_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

void write_message(JsonWriter& json, const outbox::EventRow& row) {
  json.begin_object().field("id", row.id).field("consumer", row.consumer);
  json.field("queue", row.queue).field("status", row.status).field("last_error", row.error);
  json.field("attempts", row.attempts).field("age_ms", row.age().count());
  json.field("exchange", row.exchange).field("routing_key", row.routing_key);
  json.field("message_id", row.message_id).field("content_type", row.content_type);
  json.field("type", row.type).field("aggregate_type", row.aggregate_type);
  json.field("aggregate", row.aggregate).field("version", row.version);
  json.field("correlation_id", row.correlation_id).field("causation_id", row.causation_id);
  json.field("traceparent", row.traceparent).field("headers", row.headers);
  json.field("payload", row.payload).key("raw_hex");
  row.raw.empty() ? json.null() : json.value(in_hex(row.raw));
  json.end_object();
}

}  // namespace

Result<int> inbox_install(Context& context, const EventArguments& arguments) {
  auto connection = open_database(context, arguments.database);
  if (!connection) return connection.error();
  if (auto ok = install(**connection); !ok) return ok.error();
  context.out.installed("the inbox", arguments.database);
  return exit_code::ok;
}

Result<int> inbox_status(Context& context, const EventArguments& arguments) {
  auto opened = open_inbox(context, arguments);
  if (!opened) return opened.error();
  const auto health = inbox::read_health(*opened->connection, arguments.consumer);
  if (!health) return health.error();
  const auto verdict = inbox::judge(*health);
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("stuck", verdict.stuck).field("why", verdict.why);
    json.key("consumers").begin_array();
    for (const auto& part : *health) {
      json.begin_object().field("consumer", part.consumer).field("status", part.status);
      json.field("count", part.pile.count).field("oldest_ms", part.pile.oldest.count());
      json.end_object();
    }
    json.end_array().end_object();
    context.out.line(json.text());
  } else {
    context.out.line(
        context.out.styled(printable((verdict.stuck ? "stuck: " : "ok: ") + verdict.why),
                           verdict.stuck ? Style::red : Style::plain));
    std::vector<std::vector<std::string>> rows;
    for (const auto& part : *health) {
      rows.push_back(
          {part.consumer, part.status, std::to_string(part.pile.count), about(part.pile.oldest)});
    }
    if (!rows.empty()) context.out.table({"CONSUMER", "STATUS", "EVENTS", "OLDEST"}, rows);
  }
  return verdict.stuck ? exit_code::error : exit_code::ok;
}

Result<int> inbox_list(Context& context, const EventArguments& arguments) {
  return list(context, arguments, {"RETRY", "HELD", "DEAD"});
}

Result<int> inbox_show(Context& context, const EventArguments& arguments) {
  return show(context, arguments, {});
}

Result<int> dlq_list(Context& context, const EventArguments& arguments) {
  if (arguments.each) return list(context, arguments, {std::string(inbox::status::dead)});
  auto opened = open_inbox(context, arguments);
  if (!opened) return opened.error();
  const auto count =
      inbox::count_events(*opened->connection, inbox::Action::discard, opened->filter);
  if (!count) return count.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("count", count->count);
    write_groups(json, *count);
    json.end_object();
    context.out.line(json.text());
  } else if (count->count == 0) {
    context.out.line("no dead letters match");
  } else {
    show_groups(context, *count);
  }
  return exit_code::ok;
}

Result<int> dlq_show(Context& context, const EventArguments& arguments) {
  return show(context, arguments, {std::string(inbox::status::dead)});
}

Result<int> dlq_redrive(Context& context, const EventArguments& arguments) {
  outbox::Pace pace;
  if (!arguments.rate.empty()) {
    const auto rate = parse_rate(arguments.rate);
    if (!rate) return rate.error();
    pace = pace_of(*rate);
  }
  return change(
      context, arguments, inbox::Action::redrive,
      {.verb = "redrive", .would = "would be handled again", .did = "will be handled again"}, pace);
}

Result<int> dlq_discard(Context& context, const EventArguments& arguments) {
  return change(context, arguments, inbox::Action::discard,
                {.verb = "discard", .would = "would be discarded", .did = "discarded"}, {});
}

Result<int> dlq_export(Context& context, const EventArguments& arguments) {
  auto opened = open_inbox(context, arguments);
  if (!opened) return opened.error();
  opened->filter.statuses = {std::string(inbox::status::dead)};
  outbox::EventPage page{.limit = kExportAtOnce, .with_payload = true};
  while (true) {
    const auto rows =
        outbox::list_events(*opened->connection, inbox::inbox_events(), opened->filter, page);
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      JsonWriter json;
      write_message(json, row);
      context.out.line(json.text());
    }
    if (static_cast<std::int64_t>(rows->size()) < page.limit) return exit_code::ok;
    page.after = rows->back().position;
  }
}

}  // namespace baton::cli
