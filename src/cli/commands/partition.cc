// baton partition: how sets are divided.

#include <fmt/core.h>

#include "baton/locks.h"
#include "baton/partitions.h"
#include "cli/commands.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"

namespace baton::cli {
namespace {

std::string joined(const std::vector<std::string>& nodes) {
  std::string all;
  for (const auto& node : nodes) all += (all.empty() ? "" : ", ") + node;
  return all.empty() ? "-" : all;
}

void write_json(JsonWriter& json, const PartitionSet& set) {
  json.begin_object().field("set", set.name).field("count", set.count);
  json.key("members").begin_array();
  for (const auto& member : set.members) {
    json.begin_object().field("node", member.node).field("quota", member.quota);
    json.field("owned", member.owned).field("member_for_ms", member.member_for.count());
    json.key("metadata").begin_object();
    for (const auto& [key, value] : member.metadata) json.field(key, value);
    json.end_object().end_object();
  }
  json.end_array().key("partitions").begin_array();
  for (const auto& partition : set.partitions) {
    json.begin_object().field("partition", partition.number).key("owner");
    if (partition.node.empty()) {
      json.null();
    } else {
      json.value(partition.node);
      json.field("token", partition.token).field("owned_for_ms", partition.owned_for.count());
      json.field("expires_in_ms", partition.expires_in.count()).field("ending", partition.ending);
    }
    json.key("waiting").begin_array();
    for (const auto& node : partition.waiting) json.value(node);
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void show(Context& context, const PartitionSet& set) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& partition : set.partitions) {
    const bool is_free = partition.node.empty();
    rows.push_back({set.name, std::to_string(partition.number), is_free ? "-" : partition.node,
                    is_free ? "-" : std::to_string(partition.token),
                    is_free ? "free" : about(partition.owned_for), joined(partition.waiting)});
  }
  context.out.table({"SET", "PARTITION", "OWNER", "TOKEN", "OWNED FOR", "WAITING"}, rows);
  rows.clear();
  for (const auto& member : set.members) {
    rows.push_back({set.name, member.node, std::to_string(member.quota),
                    std::to_string(member.owned), about(member.member_for)});
  }
  if (rows.empty()) return;
  context.out.line("");
  context.out.table({"SET", "MEMBER", "QUOTA", "OWNED", "MEMBER FOR"}, rows);
}

}  // namespace

Result<int> partition_list(Context& context, const PartitionArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto locks = open_locks(context, *settings);
  if (!locks) return locks.error();
  const std::string region =
      settings->region.empty() ? std::string(kDefaultRegion) : settings->region;
  auto sets = partition_sets(*locks, arguments.set, region);
  if (!sets) return sets.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("sets").begin_array();
    for (const auto& set : *sets) write_json(json, set);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  if (sets->empty()) {
    const std::string what =
        arguments.set.empty() ? "no set of partitions" : "no set " + arguments.set;
    context.out.line(printable(what + " in the region " + region + " of " +
                               redact_url(settings->store) +
                               ": nobody runs one there now, or it is another store or region"));
  }
  bool first = true;
  for (const auto& set : *sets) {
    if (!std::exchange(first, false)) context.out.line("");
    show(context, set);
  }
  return exit_code::ok;
}

}  // namespace baton::cli
