// baton node: which processes are there.

#include <fmt/core.h>

#include "baton/node.h"
#include "cli/commands.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"
#include "node/wall_time.h"

namespace baton::cli {
namespace {

void write_json(JsonWriter& json, const NodeInfo& node) {
  json.begin_object().field("id", node.id).field("alive", node.alive);
  json.field("role", node.role).field("host", node.host).field("pid", node.pid);
  json.field("version", node.version).field("started", node::print_time(node.started));
  if (node.alive) {
    json.field("token", node.token).field("alive_for_ms", node.alive_for.count());
    json.field("expires_in_ms", node.expires_in.count());
  }
  json.key("metadata").begin_object();
  for (const auto& [key, value] : node.metadata) json.field(key, value);
  json.end_object().end_object();
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

Result<int> node_list(Context& context, const NodeArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto locks = open_locks(context, *settings);
  if (!locks) return locks.error();
  const std::string region =
      settings->region.empty() ? std::string(kDefaultRegion) : settings->region;
  auto nodes = arguments.live ? live_nodes(*locks, region) : known_nodes(*locks, region);
  if (!nodes) return nodes.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("nodes").begin_array();
    for (const auto& node : *nodes) write_json(json, node);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  if (nodes->empty()) {
    context.out.line("no nodes");
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& node : *nodes) {
    rows.push_back({node.id, node.alive ? "alive" : "gone", or_dash(node.role), or_dash(node.host),
                    std::to_string(node.pid), or_dash(node.version),
                    node.alive ? about(node.alive_for) : "-", node::print_time(node.started)});
  }
  context.out.table({"NODE", "STATE", "ROLE", "HOST", "PID", "VERSION", "ALIVE FOR", "STARTED"},
                    rows);
  return exit_code::ok;
}

}  // namespace baton::cli
