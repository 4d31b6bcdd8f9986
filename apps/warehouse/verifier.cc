#include "apps/warehouse/verifier.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_map>

#include "apps/warehouse/observed_event.h"
#include "baton/outbox.h"
#include "json/json.h"
#include "sql/connection.h"

namespace baton::warehouse {
namespace {

constexpr std::int64_t kPage = 10'000;

// Of one row.
struct Count {
  bool in_source = false;
  int events = 0;
  int effects = 0;
};
using Counts = std::unordered_map<std::string, Count>;

// An outbox in SQLite has one lane, and only PostgreSQL an index on lanes.
int lanes_of(const sql::Connection& data) {
  return data.kind() == sql::Kind::postgres ? kOutboxLanes : 1;
}

std::string node_in(const std::string& headers) {
  const auto json = nlohmann::json::parse(headers, nullptr, false);
  return json.is_object() ? json.value("node", "") : "";
}

Result<void> count_events(sql::Connection& data, const ObserverType& type, Counts& counts,
                          TypeFigures& figures) {
  for (std::int64_t lane = 0; lane < lanes_of(data); ++lane) {
    std::int64_t after = 0;
    while (true) {
      auto rows = data.query(
          "SELECT position, aggregate_id, headers FROM outbox_events"
          " WHERE aggregate_type = $1 AND lane = $2 AND position > $3 ORDER BY position LIMIT $4",
          {type.name, lane, after, kPage});
      if (!rows) return rows.error();
      for (const sql::Row& row : *rows) {
        after = row.integer(0);
        ++counts[row.text(1)].events;
        ++figures.nodes[node_in(row.text(2))].events;
      }
      if (rows->size() < static_cast<std::size_t>(kPage)) break;
    }
  }
  return {};
}

Result<void> count_effects(sql::Connection& effects, const ObserverType& type, Counts& counts) {
  std::string after;
  while (true) {
    auto rows = effects.query(
        "SELECT source_id, count(*) FROM warehouse_effect WHERE type = $1 AND source_id > $2"
        " GROUP BY source_id ORDER BY source_id LIMIT $3",
        {type.name, after, kPage});
    if (!rows) return rows.error();
    for (const sql::Row& row : *rows) {
      after = row.text(0);
      counts[after].effects += static_cast<int>(row.integer(1));
    }
    if (rows->size() < static_cast<std::size_t>(kPage)) return {};
  }
}

Result<void> count_rows(sql::Connection& source, const ObserverType& type, Counts& counts,
                        TypeFigures& figures) {
  std::string after;
  while (true) {
    auto rows = source.query("SELECT id FROM " + type.table + " WHERE id > $1 ORDER BY id LIMIT $2",
                             {after, kPage});
    if (!rows) return rows.error();
    for (const sql::Row& row : *rows) {
      after = row.text(0);
      counts[aggregate_of(type, after)].in_source = true;
      ++figures.rows;
    }
    if (rows->size() < static_cast<std::size_t>(kPage)) return {};
  }
}

Result<void> count_polls(sql::Connection& data, const ObserverType& type, TypeFigures& figures) {
  auto rows = data.query(
      "SELECT node, outcome, count(*), sum(source_queries) FROM warehouse_poll WHERE type = $1"
      " GROUP BY node, outcome",
      {type.name});
  if (!rows) return rows.error();
  for (const sql::Row& row : *rows) {
    NodeFigures& node = figures.nodes[row.text(0)];
    const std::int64_t polls = row.integer(2);
    figures.polls += polls;
    node.polls += polls;
    if (row.text(1) == "failed") node.failed += polls;
    if (row.text(1) == "unfinished") figures.unfinished_polls += polls;
    node.queries += row.integer(3);
  }
  for (const auto& [name, node] : figures.nodes) {
    figures.failed_polls += node.failed;
    figures.source_queries += node.queries;
  }
  return {};
}

void compare(std::int64_t before, std::int64_t after, StepFigures& step) {
  step.all += after;
  if (before > 0 && after < before) ++step.missing;
  if (before > 0 && after > before) ++step.doubled;
  if (before == 0 && after > 0) ++step.unknown;
}

Result<TypeFigures> verify_type(sql::Connection& effects, sql::Connection& data,
                                sql::Connection& source, const ObserverType& type) {
  TypeFigures figures;
  Counts counts;
  // Against the flow: what an effect is about is in the outbox by then, and what an event is about
  // in the source, while others go on writing.
  if (auto ok = count_effects(effects, type, counts); !ok) return ok.error();
  if (auto ok = count_events(data, type, counts, figures); !ok) return ok.error();
  if (auto ok = count_rows(source, type, counts, figures); !ok) return ok.error();
  if (auto ok = count_polls(data, type, figures); !ok) return ok.error();
  for (const auto& [id, count] : counts) {
    compare(count.in_source ? 1 : 0, count.events, figures.events);
    compare(count.events, count.effects, figures.effects);
  }
  return figures;
}

Result<std::unique_ptr<sql::Connection>> open_to_read(const Config& config, const std::string& url,
                                                      const std::string& name) {
  return sql::Connection::open(
      url, {.name = name, .read_only = true, .statement_timeout = config.statement_timeout});
}

}  // namespace

Result<Verdict> verify(const Config& config, const std::string& data_url,
                       const std::string& effects_url) {
  auto data = open_to_read(config, data_url, "data");
  if (!data) return data.error();
  auto effects = open_to_read(config, effects_url, "effects");
  if (!effects) return effects.error();
  Verdict verdict;
  for (const auto& [name, observers] : config.observers) {
    const ObserverType& type = *observer_type(name).value();
    auto source = open_to_read(config, config.source_of(name), "source of " + name);
    if (!source) return source.error();
    auto figures = verify_type(**effects, **data, **source, type);
    if (!figures) return figures.error();
    verdict[name] = std::move(*figures);
  }
  return verdict;
}

bool exact(const Verdict& verdict) {
  return std::all_of(verdict.begin(), verdict.end(),
                     [](const auto& type) { return type.second.exact(); });
}

bool hopeless(const Verdict& verdict) {
  return std::any_of(verdict.begin(), verdict.end(), [](const auto& type) {
    const auto broken = [](const StepFigures& step) {
      return step.doubled > 0 || step.unknown > 0;
    };
    return broken(type.second.events) || broken(type.second.effects);
  });
}

namespace {

const char* conclusion(const Verdict& verdict) {
  const bool observed = std::all_of(verdict.begin(), verdict.end(),
                                    [](const auto& type) { return type.second.events.exact(); });
  if (!observed) return "NOT every source row was observed exactly once";
  return exact(verdict)
             ? "every source row was observed exactly once, and every event had one effect"
             : "every source row was observed exactly once, but NOT every event had one effect";
}

}  // namespace

std::string to_text(const Verdict& verdict) {
  std::array<char, 200> line{};
  std::string text;
  const auto add = [&](int) { text += line.data(); };
  add(std::snprintf(line.data(), line.size(), "%-12s %8s %8s %8s %8s %8s %9s %8s %8s %8s\n", "TYPE",
                    "ROWS", "EVENTS", "MISSING", "DOUBLED", "UNKNOWN", "EFFECTS", "MISSING",
                    "DOUBLED", "UNKNOWN"));
  for (const auto& [name, type] : verdict) {
    add(std::snprintf(
        line.data(), line.size(),
        "%-12.40s %8lld %8lld %8lld %8lld %8lld %9lld %8lld %8lld %8lld\n", name.c_str(),
        static_cast<long long>(type.rows), static_cast<long long>(type.events.all),
        static_cast<long long>(type.events.missing), static_cast<long long>(type.events.doubled),
        static_cast<long long>(type.events.unknown), static_cast<long long>(type.effects.all),
        static_cast<long long>(type.effects.missing), static_cast<long long>(type.effects.doubled),
        static_cast<long long>(type.effects.unknown)));
  }
  text += "\n";
  add(std::snprintf(line.data(), line.size(), "%-12s %-30s %8s %8s %8s %8s\n", "TYPE", "NODE",
                    "POLLS", "FAILED", "QUERIES", "EVENTS"));
  for (const auto& [name, type] : verdict) {
    for (const auto& [node, figures] : type.nodes) {
      add(std::snprintf(line.data(), line.size(), "%-12.40s %-30.60s %8lld %8lld %8lld %8lld\n",
                        name.c_str(), node.c_str(), static_cast<long long>(figures.polls),
                        static_cast<long long>(figures.failed),
                        static_cast<long long>(figures.queries),
                        static_cast<long long>(figures.events)));
    }
  }
  return text + "\n" + conclusion(verdict) + "\n";
}

std::string to_json(const Verdict& verdict) {
  nlohmann::ordered_json json{{"exact", exact(verdict)},
                              {"types", nlohmann::ordered_json::object()}};
  for (const auto& [name, type] : verdict) {
    auto& out = json["types"][name];
    out = {{"rows", type.rows},
           {"events", type.events.all},
           {"missing", type.events.missing},
           {"doubled", type.events.doubled},
           {"unknown", type.events.unknown},
           {"effects", type.effects.all},
           {"effectsMissing", type.effects.missing},
           {"effectsDoubled", type.effects.doubled},
           {"effectsUnknown", type.effects.unknown},
           {"polls", type.polls},
           {"failedPolls", type.failed_polls},
           {"unfinishedPolls", type.unfinished_polls},
           {"sourceQueries", type.source_queries},
           {"nodes", nlohmann::ordered_json::object()}};
    for (const auto& [node, figures] : type.nodes) {
      out["nodes"][node] = {{"polls", figures.polls}, {"events", figures.events}};
    }
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace baton::warehouse
