#pragma once

// Shared by `baton outbox`, `inbox` and `dlq`: opening the database, showing events, and asking
// before any are changed.

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/json_writer.h"
#include "outbox/operate.h"
#include "sql/connection.h"

namespace baton::cli {

// Whether it is a URL of a database that events can be in.
[[nodiscard]] Result<void> check_database(const std::string& url);

// The database must be there: a typing error must not make an empty one.
[[nodiscard]] Result<std::unique_ptr<sql::Connection>> open_database(const Context& context,
                                                                     const std::string& url);

// A status that no event can have would find nothing, and look as if all were well.
[[nodiscard]] Result<void> check_statuses(const EventArguments& arguments,
                                          std::initializer_list<std::string_view> known);

[[nodiscard]] Result<outbox::EventFilter> parse_filter(const EventArguments& arguments);
[[nodiscard]] Result<outbox::EventPage> parse_page(const EventArguments& arguments);

// 30s, 12h, and days beyond the hours that other times have: 45d.
[[nodiscard]] Result<Millis> parse_age(std::string_view option, std::string_view text);

// Events of a table, one a line, and what follows them.
void show_events(const Context& context, const std::vector<outbox::EventRow>& rows,
                 const outbox::EventPage& page);
void write_json(JsonWriter& json, const outbox::EventRow& row, bool with_payload);
void show_event(const Context& context, const outbox::EventRow& row);

// By status and error, the largest groups first.
void show_groups(const Context& context, const outbox::EventCount& count);
void write_groups(JsonWriter& json, const outbox::EventCount& count);

// A change of many events.
struct Change {
  std::string verb;   // discard
  std::string would;  // would be discarded
  std::string did;    // discarded
  std::function<Result<outbox::EventCount>()> count;
  std::function<Result<std::int64_t>(const outbox::EventCount&)> apply;
  std::string warning = {};  // said before it is asked for
};

// Asks before something that cannot be undone: false for no, which it says. An error where nobody
// can answer, unless `yes` was given. `would` is what would happen.
[[nodiscard]] Result<bool> confirmed(const Context& context, bool yes, const std::string& would,
                                     const std::string& question);

// Counts first. Changes them if --yes was given or the user says so; with --dry-run never.
[[nodiscard]] Result<int> change_events(Context& context, const EventArguments& arguments,
                                        const Change& change);

}  // namespace baton::cli
