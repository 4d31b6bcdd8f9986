#include "broker/embedded/topology_file.h"

#include <algorithm>

#include "broker/common/message.h"

namespace baton::broker {
namespace {

using Severity = BrokerFinding::Severity;

std::string_view name_of(Topology::Type type) {
  return type == Topology::Type::topic ? "topic" : "headers";
}

std::string name_of(const Topology::Binding& binding) {
  return binding.exchange + " -> " +
         (binding.queue.empty() ? "exchange " + binding.to_exchange : binding.queue) + " by " +
         binding.pattern;
}

template <typename Part>
const Part* find(const std::vector<Part>& parts, const std::string& name) {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
  return found == parts.end() ? nullptr : &*found;
}

bool contains(const std::vector<Topology::Binding>& all, const Topology::Binding& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

BrokerFinding other_argument(const std::string& kind, const std::string& name,
                             const std::string& argument, const std::string& there,
                             const std::string& wanted) {
  return {Severity::problem, "other-arguments", name,
          kind + " " + name + " exists with " + argument + " " + there + ", not " + wanted +
              ": remove it, or declare what is there"};
}

std::string text(bool truth) { return truth ? "true" : "false"; }
std::string text(std::uint64_t number) { return std::to_string(number); }

void compare(const Topology::Exchange& there, const Topology::Exchange& wanted,
             std::vector<BrokerFinding>& found) {
  if (there.type != wanted.type) {
    found.push_back(other_argument("exchange", wanted.name, "type",
                                   std::string(name_of(there.type)),
                                   std::string(name_of(wanted.type))));
  }
  if (there.alternate != wanted.alternate) {
    found.push_back(other_argument("exchange", wanted.name, "alternate",
                                   there.alternate.empty() ? "none" : there.alternate,
                                   wanted.alternate.empty() ? "none" : wanted.alternate));
  }
}

void compare(const Topology::Queue& there, const Topology::Queue& wanted,
             std::vector<BrokerFinding>& found) {
  const auto argument = [&](const char* name, auto is, auto should_be) {
    if (is == should_be) return;
    found.push_back(other_argument("queue", wanted.name, name, text(is), text(should_be)));
  };
  argument("dead_letters", there.dead_letters, wanted.dead_letters);
  argument("single_active", there.single_active, wanted.single_active);
  argument("max_length", there.max_length, wanted.max_length);
}

Result<void> run(Database& database, std::string_view sql, const auto&... values) {
  auto statement = database.prepare(sql);
  if (!statement) return statement.error();
  return statement->start(values...).run();
}

// Calls `row` for each row.
Result<void> each(Database& database, std::string_view sql, const auto& row) {
  auto statement = database.prepare(sql);
  if (!statement) return statement.error();
  while (true) {
    auto more = statement->step();
    if (!more) return more.error();
    if (!*more) return {};
    row(*statement);
  }
}

}  // namespace

Result<std::int64_t> topology_version(Database& database) {
  std::int64_t version = 0;
  auto read = each(database, "SELECT version FROM topology",
                   [&](const Statement& row) { version = row.integer(0); });
  if (!read) return read.error();
  return version;
}

Result<StoredTopology> load_topology(Database& database) {
  StoredTopology stored;
  Topology& topology = stored.topology;
  auto read = each(
      database, "SELECT name, type, alternate FROM exchange ORDER BY name",
      [&](const Statement& row) {
        const auto type = row.text(1) == "topic" ? Topology::Type::topic : Topology::Type::headers;
        topology.exchanges.push_back({std::string(row.text(0)), type, std::string(row.text(2))});
      });
  if (!read) return read.error();
  read = each(database,
              "SELECT id, name, dead_letters, single_active, max_length FROM queue ORDER BY name",
              [&](const Statement& row) {
                const auto max_length = static_cast<std::uint64_t>(row.integer(4));
                stored.queues.push_back({row.integer(0), max_length});
                topology.queues.push_back({std::string(row.text(1)), row.integer(2) != 0,
                                           row.integer(3) != 0, max_length});
              });
  if (!read) return read.error();
  read = each(database, "SELECT exchange, pattern, queue, to_exchange FROM binding",
              [&](const Statement& row) {
                topology.bindings.push_back({std::string(row.text(0)), std::string(row.text(1)),
                                             std::string(row.text(2)), std::string(row.text(3))});
              });
  if (!read) return read.error();
  return stored;
}

Topology with_dead_letters(const Topology& topology) {
  Topology all = topology;
  for (const auto& queue : topology.queues) {
    if (!queue.dead_letters) continue;
    all.queues.push_back({.name = dead_letter_queue(queue.name), .dead_letters = false});
  }
  return all;
}

std::vector<BrokerFinding> differences(const Topology& there, const Topology& wanted) {
  std::vector<BrokerFinding> found;
  const auto missing = [&](const std::string& kind, const std::string& name) {
    found.push_back({Severity::problem, "missing-" + kind, name,
                     kind + " " + name + " does not exist: apply the topology"});
  };
  for (const auto& exchange : wanted.exchanges) {
    const auto* exists = find(there.exchanges, exchange.name);
    if (exists == nullptr) {
      missing("exchange", exchange.name);
    } else {
      compare(*exists, exchange, found);
    }
  }
  for (const auto& queue : wanted.queues) {
    const auto* exists = find(there.queues, queue.name);
    if (exists == nullptr) {
      missing("queue", queue.name);
    } else {
      compare(*exists, queue, found);
    }
  }
  for (const auto& binding : wanted.bindings) {
    if (!contains(there.bindings, binding)) missing("binding", name_of(binding));
  }
  for (const auto& binding : there.bindings) {
    if (contains(wanted.bindings, binding)) continue;
    // Of exchanges and queues of others nothing is said.
    const bool ours = find(wanted.exchanges, binding.exchange) != nullptr &&
                      (find(wanted.queues, binding.queue) != nullptr ||
                       find(wanted.exchanges, binding.to_exchange) != nullptr);
    if (!ours) continue;
    found.push_back({Severity::note, "extra-binding", name_of(binding),
                     "binding " + name_of(binding) + " is not in the topology; it stays"});
  }
  return found;
}

Result<void> add_missing(Database& database, const Topology& there, const Topology& wanted) {
  bool changed = false;
  for (const auto& exchange : wanted.exchanges) {
    if (find(there.exchanges, exchange.name) != nullptr) continue;
    changed = true;
    auto added = run(database, "INSERT INTO exchange(name, type, alternate) VALUES(?1, ?2, ?3)",
                     std::string_view(exchange.name), name_of(exchange.type),
                     std::string_view(exchange.alternate));
    if (!added) return added;
  }
  for (const auto& queue : wanted.queues) {
    if (find(there.queues, queue.name) != nullptr) continue;
    changed = true;
    auto added =
        run(database,
            "INSERT INTO queue(name, dead_letters, single_active, max_length) "
            "VALUES(?1, ?2, ?3, ?4)",
            std::string_view(queue.name), std::int64_t{queue.dead_letters},
            std::int64_t{queue.single_active}, static_cast<std::int64_t>(queue.max_length));
    if (!added) return added;
  }
  for (const auto& binding : wanted.bindings) {
    if (contains(there.bindings, binding)) continue;
    changed = true;
    auto added = run(database,
                     "INSERT INTO binding(exchange, pattern, queue, to_exchange) "
                     "VALUES(?1, ?2, ?3, ?4)",
                     std::string_view(binding.exchange), std::string_view(binding.pattern),
                     std::string_view(binding.queue), std::string_view(binding.to_exchange));
    if (!added) return added;
  }
  if (!changed) return {};
  return run(database, "UPDATE topology SET version = version + 1");
}

}  // namespace baton::broker
