// baton lock stats: how many locks there are of what, and where they queue.

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/lock_view.h"
#include "cli/open_locks.h"

namespace baton::cli {
namespace {

struct Count {
  std::size_t held = 0;
  std::size_t waiting = 0;
  Millis ttl_sum{0};
  [[nodiscard]] Millis average_ttl() const {
    return held == 0 ? Millis(0) : ttl_sum / static_cast<std::int64_t>(held);
  }
};

struct Stats {
  std::size_t names = 0;
  Count all;
  std::map<std::pair<std::string, std::string>, Count> by_kind;  // subject and predicate
  std::vector<std::pair<std::size_t, std::string>> queues;       // waiting, key; longest first
  std::vector<std::string> damaged;                              // keys
};

void count(const LockInfo& info, Stats& stats) {
  const auto name = parse_key(info.key);
  const std::string subject = name ? name->subject : info.key;
  ++stats.names;
  if (!info.damage.empty()) stats.damaged.push_back(info.key);
  for (const auto& holder : info.holders) {
    for (Count* into : {&stats.all, &stats.by_kind[{subject, holder.predicate}]}) {
      ++into->held;
      into->ttl_sum += holder.ttl;
    }
  }
  for (const auto& waiter : info.waiters) ++stats.by_kind[{subject, waiter.predicate}].waiting;
  stats.all.waiting += info.waiting;
  if (info.waiting > 0) stats.queues.emplace_back(info.waiting, info.key);
}

Result<Stats> gather(LockClient& locks, const std::string& region) {
  Stats stats;
  Query query;
  query.region = region;
  query.max_waiters = 100'000;
  do {
    auto page = locks.find(query);
    if (!page) return page.error();
    for (const auto& info : page->items) count(info, stats);
    query.after = page->next;
  } while (!query.after.empty());
  std::sort(stats.queues.begin(), stats.queues.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  return stats;
}

void print_json(Context& context, const Stats& stats) {
  JsonWriter json;
  json.begin_object().field("names", stats.names).field("held", stats.all.held);
  json.field("waiting", stats.all.waiting);
  json.field("average_ttl_ms", stats.all.average_ttl().count()).key("kinds").begin_array();
  for (const auto& [kind, count] : stats.by_kind) {
    json.begin_object().field("subject", kind.first).field("predicate", kind.second);
    json.field("held", count.held).field("waiting", count.waiting);
    json.field("average_ttl_ms", count.average_ttl().count()).end_object();
  }
  json.end_array().key("contended").begin_array();
  for (const auto& [waiting, key] : stats.queues) {
    json.begin_object().field("key", key).field("waiting", waiting).end_object();
  }
  json.end_array().key("damaged").begin_array();
  for (const auto& key : stats.damaged) json.value(key);
  json.end_array().end_object();
  context.out.line(json.text());
}

void print_text(Context& context, const Stats& stats) {
  if (stats.names == 0) {
    context.out.line("no locks are held");
    return;
  }
  context.out.line(fmt::format("{} held, {} waiting, on {}", stats.all.held, stats.all.waiting,
                               counted(stats.names, "name")));
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, count] : stats.by_kind) {
    rows.push_back({kind.first, kind.second, std::to_string(count.held),
                    std::to_string(count.waiting),
                    count.held == 0 ? "-" : about(count.average_ttl())});
  }
  context.out.line("");
  context.out.table({"SUBJECT", "PREDICATE", "HELD", "WAITING", "AVERAGE TTL"}, rows);
  if (stats.queues.empty()) return;
  rows.clear();
  for (const auto& [waiting, key] : stats.queues) {
    rows.push_back({shown_name(key), std::to_string(waiting)});
  }
  context.out.line("");
  context.out.table({"MOST CONTENDED", "WAITING"}, rows);
}

}  // namespace

Result<int> lock_stats(Context& context, const LockStatsArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto locks = open_locks(context, *settings);
  if (!locks) return locks.error();
  auto stats = gather(*locks, settings->region);
  if (!stats) return stats.error();
  if (stats->queues.size() > arguments.top) stats->queues.resize(arguments.top);
  for (const auto& key : stats->damaged) {
    context.out.warning(shown_name(key) + ": what the store keeps of it is damaged");
  }
  if (context.out.json()) {
    print_json(context, *stats);
  } else {
    print_text(context, *stats);
  }
  return exit_code::ok;
}

}  // namespace baton::cli
