// baton lock find and list: who holds what, once or for as long as somebody watches.

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/lock_view.h"
#include "cli/open_locks.h"

namespace baton::cli {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

struct Row {
  std::vector<std::string> cells;
  std::string lasting;  // what of it does not change by itself from one look to the next
};

bool asked_for(const Query& query, const auto& who) {
  return (query.predicate.empty() || who.predicate == query.predicate) &&
         (!query.mode || who.mode == *query.mode) &&
         (query.owner.empty() || who.owner == query.owner);
}

// One row a holder that was asked for, and one a waiter where only waiters were.
void add_rows(const Query& query, const LockInfo& info, std::vector<Row>& rows) {
  const std::string name = shown_name(info.key);
  if (!info.damage.empty()) {
    rows.push_back({.cells = {name, "-", "-", "-", "-", "-", "-", "-", "damaged: " + info.damage},
                    .lasting = name + "  damaged: " + info.damage});
    return;
  }
  const std::string waiting = info.waiting > 0 ? std::to_string(info.waiting) : "-";
  const auto add = [&](const auto& who, const std::string& token, const std::string& held,
                       const std::string& expires, const std::string& state) {
    const std::string mode(long_name(who.mode));
    rows.push_back(
        {.cells = {name, mode, who.predicate, who.owner, token, held, expires, waiting, state},
         .lasting = fmt::format("{}  {}  {}  {}  token {}  {} waiting  {}", name, mode,
                                who.predicate, who.owner, token, waiting, state)});
  };
  bool any = false;
  for (const auto& holder : info.holders) {
    if (!asked_for(query, holder)) continue;
    any = true;
    add(holder, std::to_string(holder.token), about(holder.held_for),
        "in " + about(holder.expires_in), shown_state(holder));
  }
  if (any) return;
  for (const auto& waiter : info.waiters) {
    if (asked_for(query, waiter)) add(waiter, "-", "-", "-", "waiting");
  }
}

std::vector<Row> rows_of(const Query& query, const Page<LockInfo>& page) {
  std::vector<Row> rows;
  for (const auto& info : page.items) add_rows(query, info, rows);
  return rows;
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

// NAME stands for --subject and --resource.
Result<void> add_name(const LockFindArguments& arguments, Query& query) {
  if (arguments.name.empty()) return {};
  if (!arguments.subject.empty() || !arguments.resources.empty()) {
    return bad_request("say NAME, or --subject and --resource, not both");
  }
  auto path = parse_path(arguments.name);
  if (!path) return path.error();
  query.subject = std::move(path->subject);
  query.resources = std::move(path->resources);
  return {};
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
  if (auto ok = add_name(arguments, query); !ok) return ok.error();
  auto mode = parse_mode_argument(arguments.mode);
  if (!mode) return mode.error();
  query.mode = *mode;
  for (const auto* text : {&query.region, &query.subject, &query.predicate}) {
    if (text->empty()) continue;
    if (auto ok = validate(LockName{.subject = *text}); !ok) return ok.error();
  }
  return query;
}

std::string in_json(const Page<LockInfo>& page) {
  JsonWriter json;
  json.begin_object().key("locks").begin_array();
  for (const auto& info : page.items) write_json(json, info);
  json.end_array().field("more", !page.next.empty()).end_object();
  return json.text();
}

struct Column {
  std::string_view title;
  std::string_view says_nothing = {};  // a cell that need not be shown
};
constexpr std::array<Column, 9> kColumns = {{{"NAME"},
                                             {"MODE"},
                                             {"PREDICATE", kDefaultPredicate},
                                             {"OWNER"},
                                             {"TOKEN"},
                                             {"HELD"},
                                             {"EXPIRES"},
                                             {"WAITING", "-"},
                                             {"STATE", "held"}}};

bool says_something(std::size_t column, const std::vector<Row>& rows) {
  const std::string_view nothing = kColumns[column].says_nothing;
  return nothing.empty() || std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
           return row.cells[column] != nothing;
         });
}

bool has_filter(const Query& query) {
  return !query.region.empty() || !query.subject.empty() || !query.resources.empty() ||
         !query.predicate.empty() || query.mode || !query.owner.empty();
}

// On a terminal that is too narrow, columns in which nothing is said are left out. With `most`, not
// more lines than that.
void show_table(const Context& context, const Query& query, const Page<LockInfo>& page,
                const std::vector<Row>& rows, std::optional<std::size_t> most = {}) {
  if (rows.empty()) {
    context.out.line(has_filter(query) ? "no locks match" : "no locks");
    return;
  }
  // The titles, and what is said below, which takes two lines of a narrow terminal.
  const std::size_t around = page.next.empty() ? 1 : 3;
  std::size_t fit = rows.size();
  if (most && fit + around > *most) fit = *most > around + 2 ? *most - around - 1 : 1;
  const auto table_of = [&](const std::function<bool(std::size_t)>& shown) {
    std::vector<std::vector<std::string>> table(fit + 1);
    for (std::size_t column = 0; column < kColumns.size(); ++column) {
      if (!shown(column)) continue;
      table[0].emplace_back(kColumns[column].title);
      for (std::size_t i = 0; i < fit; ++i) table[i + 1].push_back(rows[i].cells[column]);
    }
    std::vector<std::string> header = std::move(table.front());
    table.erase(table.begin());
    return std::pair(std::move(header), std::move(table));
  };
  auto [header, cells] = table_of([](std::size_t) { return true; });
  const auto terminal = context.out.terminal();
  if (terminal && Output::table_width(header, cells) > terminal->columns) {
    std::tie(header, cells) =
        table_of([&](std::size_t column) { return says_something(column, rows); });
  }
  context.out.table(header, cells);
  if (fit < rows.size()) context.out.line(fmt::format("… and {} more", rows.size() - fit));
  if (!page.next.empty()) {
    context.out.warning(
        fmt::format("only the first {} are shown; narrow the search or raise --limit",
                    counted(page.items.size(), "name")));
  }
}

// What is new and what has gone, a line each.
void show_changes(const Context& context, const std::set<std::string>& before,
                  const std::set<std::string>& now) {
  for (const auto& row : before) {
    if (!now.contains(row)) context.out.line("- " + printable(row));
  }
  for (const auto& row : now) {
    if (!before.contains(row)) context.out.line("+ " + printable(row));
  }
}

// A terminal is drawn anew each second, for the times in the table go on; elsewhere only changes
// are told. Ends by a signal, or by an error that another look would not mend.
Result<int> watch(const Context& context, LockClient& locks, const Query& query) {
  std::set<std::string> before;
  for (bool first = true;; first = false) {
    const auto page = locks.find(query);
    if (!page && !page.error().retryable) return page.error();
    const auto terminal = context.out.terminal();
    if (terminal) fmt::print("\x1b[H\x1b[J");
    if (!page) {
      context.out.warning(page.error().message);
    } else {
      const auto rows = rows_of(query, *page);
      std::set<std::string> now;
      for (const Row& row : rows) now.insert(row.lasting);
      if (terminal) {
        // The last line stays free, for the cursor: else all would move up by one.
        show_table(context, query, *page, rows, terminal->rows - 1);
      } else if (!context.out.json()) {
        show_changes(context, before, now);
      } else if (first || now != before) {
        context.out.line(in_json(*page));
      }
      before = std::move(now);
    }
    if (std::fflush(stdout) != 0) return exit_code::error;  // said by main.cc
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

Result<int> lock_find(Context& context, const LockFindArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto query = make_query(arguments, *settings);
  if (!query) return query.error();
  auto locks = open_locks(context, *settings);
  if (!locks) return locks.error();
  if (arguments.watch) return watch(context, *locks, *query);
  const auto page = locks->find(*query);
  if (!page) return page.error();
  if (context.out.json()) {
    context.out.line(in_json(*page));
  } else {
    show_table(context, *query, *page, rows_of(*query, *page));
  }
  return exit_code::ok;
}

}  // namespace baton::cli
