#include "outbox/health.h"

#include <algorithm>

#include "outbox/operate.h"
#include "outbox/operate/postgres_lanes.sql.h"
#include "outbox/operate/postgres_settled.sql.h"
#include "outbox/operate/postgres_troubled.sql.h"
#include "outbox/operate/sqlite_lanes.sql.h"
#include "outbox/operate/sqlite_settled.sql.h"
#include "outbox/operate/sqlite_troubled.sql.h"
#include "outbox/outbox_table.h"

namespace baton::outbox {
namespace {

namespace sql_of = embedded::outbox_operate;

// Of the table, or of what an SQLite table of that many positions may have. Read in a second.
constexpr std::int64_t kSmall = std::int64_t{256} << 20;

constexpr Millis kUnread = 3 * kLaneHeartbeat;
constexpr Millis kWaitsLong{60'000};

Pile pile(const sql::Row& row, std::size_t count, std::size_t age) {
  return {.count = row.integer(count), .oldest = Millis(row.integer(age))};
}

Result<void> read_lanes(const EventTables& tables, Health& health) {
  auto rows = tables.read(tables.statement(tables.on_postgres() ? sql_of::postgres_lanes_sql
                                                                : sql_of::sqlite_lanes_sql),
                          {});
  if (!rows) return rows.error();
  for (const auto& row : *rows) {
    LaneHealth lane{
        .lane = row.integer(0), .waiting = row.integer(2), .oldest = Millis(row.integer(3))};
    if (!row.null(1)) lane.read_ago = Millis(row.integer(1));
    health.waiting.count += lane.waiting;
    health.waiting.oldest = std::max(health.waiting.oldest, lane.oldest);
    health.lanes.push_back(lane);
  }
  return {};
}

Result<void> read_troubled(const EventTables& tables, Health& health) {
  auto rows = tables.read(tables.statement(tables.on_postgres() ? sql_of::postgres_troubled_sql
                                                                : sql_of::sqlite_troubled_sql),
                          {});
  if (!rows) return rows.error();
  const auto& row = rows->front();
  health.failed = pile(row, 0, 4);
  health.retrying = pile(row, 1, 5);
  health.held = pile(row, 2, 6);
  health.held_by_failed = row.integer(3);
  health.error = row.text(7);
  return {};
}

Result<void> read_settled(const EventTables& tables, Health& health) {
  auto rows = tables.read(tables.statement(tables.on_postgres() ? sql_of::postgres_settled_sql
                                                                : sql_of::sqlite_settled_sql),
                          {kSmall});
  if (!rows) return rows.error();
  const auto& row = rows->front();
  health.sent = row.integer(0);
  if (!row.null(1)) health.discarded = row.integer(1);
  health.failed.count += row.integer(2);  // those outside of the index, that hold nothing back
  health.estimated = row.boolean(3);
  return {};
}

std::string events(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " event" : " events");
}

std::string wait(std::int64_t count) { return events(count) + (count == 1 ? " waits" : " wait"); }

// Whole seconds, minutes, hours or days.
std::string span(Millis time) {
  const auto seconds = time.count() / 1000;
  if (seconds < 1) return std::to_string(std::max<std::int64_t>(time.count(), 0)) + " ms";
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86'400) + " days";
}

// "lane 3", "lanes 1, 2, 5 and 9 more", "any lane".
std::string lanes_named(const std::vector<const LaneHealth*>& lanes, std::size_t all) {
  if (lanes.size() == all) return "any lane";
  constexpr std::size_t kNamed = 4;
  std::string text = lanes.size() == 1 ? "lane " : "lanes ";
  for (std::size_t i = 0; i < std::min(lanes.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(lanes[i]->lane);
  }
  if (lanes.size() > kNamed) text += " and " + std::to_string(lanes.size() - kNamed) + " more";
  return text;
}

std::string unread(const Health& health) {
  std::vector<const LaneHealth*> lanes;
  Pile waiting;
  Millis read_ago = Millis::max();
  for (const auto& lane : health.lanes) {
    if (lane.read_ago && *lane.read_ago <= kUnread) continue;
    lanes.push_back(&lane);
    waiting.count += lane.waiting;
    waiting.oldest = std::max(waiting.oldest, lane.oldest);
    if (lane.read_ago) read_ago = std::min(read_ago, *lane.read_ago);
  }
  if (lanes.empty()) return {};
  const std::string named = lanes_named(lanes, health.lanes.size());
  std::string text = read_ago == Millis::max()
                         ? "no relay has ever read " + named
                         : "no relay reads " + named + " since " + span(read_ago);
  if (waiting.count == 0) return text + "; nothing waits there";
  return text + "; " + wait(waiting.count) + " there, the oldest for " + span(waiting.oldest);
}

std::string failed(const Health& health) {
  if (health.failed.count == 0) return {};
  std::string text =
      events(health.failed.count) + (health.failed.count == 1 ? " has failed" : " have failed");
  if (health.held_by_failed > 0) {
    text += " and " + std::string(health.failed.count == 1 ? "holds" : "hold") + " back " +
            std::to_string(health.held_by_failed) + " more";
  }
  if (!health.error.empty()) text += " (" + health.error + ")";
  return text;
}

// While all lanes are read.
std::string slow(const Health& health) {
  if (health.waiting.oldest <= kWaitsLong) return {};
  return "relays read, but " + wait(health.waiting.count) + ", the oldest for " +
         span(health.waiting.oldest) + ": see to the broker, and to the log of the relays";
}

std::string retried(const Health& health) {
  const bool one = health.retrying.count == 1;
  // Those behind a failed one are told with it.
  const auto held = std::max<std::int64_t>(0, health.held.count - health.held_by_failed);
  return events(health.retrying.count) + (one ? " is" : " are") + " being retried" +
         (held > 0 ? std::string(" and ") + (one ? "holds" : "hold") + " back " +
                         std::to_string(held) + " more"
                   : "") +
         (health.error.empty() ? "" : " (" + health.error + ")");
}

std::string retried_for_long(const Health& health) {
  if (health.retrying.count == 0 || health.retrying.oldest <= kWaitsLong) return {};
  return retried(health) + ", the oldest for " + span(health.retrying.oldest);
}

// Nothing has failed or is being retried: those that are held should flow.
std::string held_for_long(const Health& health) {
  const auto held = std::max<std::int64_t>(0, health.held.count - health.held_by_failed);
  if (held == 0 || health.retrying.count > 0 || health.held.oldest <= kWaitsLong) return {};
  return wait(held) +
         " behind others of their aggregates that have been published, the oldest for " +
         span(health.held.oldest) + ": see to the log of the relays";
}

std::string well(const Health& health) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (health.waiting.count > 0) {
    add(wait(health.waiting.count) + ", the oldest for " + span(health.waiting.oldest));
  }
  if (health.retrying.count > 0) {
    add(retried(health));
  } else if (health.held.count > 0) {
    add(wait(health.held.count) + " for others of their aggregates");
  }
  return text.empty() ? "all events are published" : text;
}

}  // namespace

Result<Health> read_health(sql::Connection& connection) {
  auto tables = EventTables::find(connection, outbox_events());
  if (!tables) return tables.error();
  Health health;
  for (const auto part : {read_lanes, read_troubled, read_settled}) {
    if (auto read = part(*tables, health); !read) return read.error();
  }
  return health;
}

Verdict judge(const Health& health) {
  Verdict verdict;
  const std::string nobody = unread(health);
  for (const std::string& why :
       {nobody, failed(health), retried_for_long(health), held_for_long(health),
        nobody.empty() ? slow(health) : std::string()}) {
    if (why.empty()) continue;
    verdict.stuck = true;
    verdict.why += (verdict.why.empty() ? "" : "; ") + why;
  }
  if (!verdict.stuck) verdict.why = well(health);
  return verdict;
}

}  // namespace baton::outbox
