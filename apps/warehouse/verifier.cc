#include "apps/warehouse/verifier.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_map>

#include "json/json.h"
#include "sql/connection.h"

namespace baton::warehouse {
namespace {

constexpr std::int64_t kPage = 10'000;

struct Count {
  bool in_source = false;
  int events = 0;
};
using Counts = std::unordered_map<std::string, Count>;

Result<void> count_events(sql::Connection& data, const ObserverType& type, Counts& counts,
                          TypeFigures& figures) {
  std::int64_t after = 0;
  while (true) {
    auto rows = data.query(
        "SELECT seq, source_id, node FROM warehouse_outbox WHERE type = $1 AND seq > $2"
        " ORDER BY seq LIMIT $3",
        {type.name, after, kPage});
    if (!rows) return rows.error();
    for (const sql::Row& row : *rows) {
      after = row.integer(0);
      ++counts[row.text(1)].events;
      ++figures.events;
      ++figures.nodes[row.text(2)].events;
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
      counts[row.text(0)].in_source = true;
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
    figures.polls += row.integer(2);
    if (row.text(1) == "failed") figures.failed_polls += row.integer(2);
    if (row.text(1) == "unfinished") figures.unfinished_polls += row.integer(2);
    figures.nodes[row.text(0)].polls += row.integer(2);
    figures.source_queries += row.integer(3);
  }
  return {};
}

Result<TypeFigures> verify_type(sql::Connection& data, sql::Connection& source,
                                const ObserverType& type) {
  TypeFigures figures;
  Counts counts;
  // The events first: what they are about is in the source by then, while others go on writing.
  if (auto ok = count_events(data, type, counts, figures); !ok) return ok.error();
  if (auto ok = count_rows(source, type, counts, figures); !ok) return ok.error();
  if (auto ok = count_polls(data, type, figures); !ok) return ok.error();
  for (const auto& [id, count] : counts) {
    if (!count.in_source) ++figures.unknown;
    if (count.in_source && count.events == 0) ++figures.missing;
    if (count.events > 1) ++figures.doubled;
  }
  return figures;
}

}  // namespace

Result<Verdict> verify(const Config& config, const std::string& data_url) {
  auto data = sql::Connection::open(
      data_url, {.name = "data", .read_only = true, .statement_timeout = config.statement_timeout});
  if (!data) return data.error();
  Verdict verdict;
  for (const auto& [name, observers] : config.observers) {
    const ObserverType& type = *observer_type(name).value();
    auto source = sql::Connection::open(config.source_of(name),
                                        {.name = "source of " + name,
                                         .read_only = true,
                                         .statement_timeout = config.statement_timeout});
    if (!source) return source.error();
    auto figures = verify_type(**data, **source, type);
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
    return type.second.doubled > 0 || type.second.unknown > 0;
  });
}

std::string to_text(const Verdict& verdict) {
  std::array<char, 200> line{};
  std::string text;
  const auto add = [&](int) { text += line.data(); };
  add(std::snprintf(line.data(), line.size(), "%-12s %9s %9s %8s %8s %8s %8s %8s %9s\n", "TYPE",
                    "ROWS", "EVENTS", "MISSING", "DOUBLED", "UNKNOWN", "POLLS", "FAILED",
                    "QUERIES"));
  for (const auto& [name, type] : verdict) {
    add(std::snprintf(
        line.data(), line.size(), "%-12.40s %9lld %9lld %8lld %8lld %8lld %8lld %8lld %9lld\n",
        name.c_str(), static_cast<long long>(type.rows), static_cast<long long>(type.events),
        static_cast<long long>(type.missing), static_cast<long long>(type.doubled),
        static_cast<long long>(type.unknown), static_cast<long long>(type.polls),
        static_cast<long long>(type.failed_polls), static_cast<long long>(type.source_queries)));
  }
  text += "\n";
  add(std::snprintf(line.data(), line.size(), "%-12s %-30s %8s %9s\n", "TYPE", "NODE", "POLLS",
                    "EVENTS"));
  for (const auto& [name, type] : verdict) {
    for (const auto& [node, figures] : type.nodes) {
      add(std::snprintf(line.data(), line.size(), "%-12.40s %-30.60s %8lld %9lld\n", name.c_str(),
                        node.c_str(), static_cast<long long>(figures.polls),
                        static_cast<long long>(figures.events)));
    }
  }
  text += exact(verdict) ? "\nevery source row was observed exactly once\n"
                         : "\nNOT every source row was observed exactly once\n";
  return text;
}

std::string to_json(const Verdict& verdict) {
  nlohmann::ordered_json json{{"exact", exact(verdict)},
                              {"types", nlohmann::ordered_json::object()}};
  for (const auto& [name, type] : verdict) {
    auto& out = json["types"][name];
    out = {{"rows", type.rows},
           {"events", type.events},
           {"missing", type.missing},
           {"doubled", type.doubled},
           {"unknown", type.unknown},
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
