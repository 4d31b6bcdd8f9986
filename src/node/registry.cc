// The nodes that the store knows: live ones hold their name, those that went without leaving only
// keep a note there.

#include "node/registry.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "json/json.h"
#include "node/wall_time.h"

namespace baton {
namespace {

std::string text_of(const Metadata& metadata, const char* key) {
  const auto it = metadata.find(key);
  return it == metadata.end() ? std::string() : it->second;
}

void describe(NodeInfo& node, Metadata metadata) {
  node.role = text_of(metadata, "role");
  node.host = text_of(metadata, "host");
  node.version = text_of(metadata, "version");
  const std::string pid = text_of(metadata, "pid");
  std::from_chars(pid.data(), pid.data() + pid.size(), node.pid);
  if (const auto started = node::parse_time(text_of(metadata, "start"))) node.started = *started;
  node.metadata = std::move(metadata);
}

const HolderInfo* live_holder(const LockInfo& info) {
  for (const HolderInfo& holder : info.holders) {
    if (!holder.released && holder.predicate == kNodePredicate) return &holder;
  }
  return nullptr;
}

std::optional<NodeInfo> node_of(const LockInfo& info) {
  const auto name = parse_key(info.key);
  if (!name || name->resources.size() != 1) return std::nullopt;
  NodeInfo node;
  node.id = name->resources.front();
  if (const HolderInfo* holder = live_holder(info)) {
    node.alive = true;
    node.token = holder->token;
    node.alive_for = holder->held_for;
    node.expires_in = holder->expires_in;
    describe(node, holder->metadata);
  } else {
    if (info.note.text.empty()) return std::nullopt;
    describe(node, node::parse_metadata(info.note.text));
  }
  return node;
}

Result<std::vector<LockInfo>> find_all(LockClient& locks, const std::string& region, bool idle) {
  std::vector<LockInfo> found;
  Query query;
  query.region = region;
  query.subject = std::string(kNodeSubject);
  query.idle = idle;
  query.max_waiters = 0;
  do {
    auto page = locks.find(query);
    if (!page) return page.error();
    for (LockInfo& info : page->items) found.push_back(std::move(info));
    query.after = page->next;
  } while (!query.after.empty());
  return found;
}

Result<std::vector<NodeInfo>> nodes(LockClient& locks, const std::string& region, bool idle) {
  auto found = find_all(locks, region, idle);
  if (!found) return found.error();
  std::vector<NodeInfo> known;
  for (const LockInfo& info : *found) {
    auto node = node_of(info);
    if (node && (node->alive || idle)) known.push_back(std::move(*node));
  }
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return known;
}

}  // namespace

Result<std::vector<NodeInfo>> live_nodes(LockClient& locks, const std::string& region) {
  return nodes(locks, region, false);
}

Result<std::vector<NodeInfo>> known_nodes(LockClient& locks, const std::string& region) {
  return nodes(locks, region, true);
}

namespace node {

std::string print_metadata(const Metadata& metadata) {
  return nlohmann::json(metadata).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Metadata parse_metadata(std::string_view text) {
  const auto json = parse_json(text);
  Metadata metadata;
  if (!json.is_object()) return metadata;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) metadata[key] = value.get<std::string>();
  }
  return metadata;
}

void forget_gone(LockClient& locks, const std::string& region, WallTime now) {
  auto found = find_all(locks, region, true);
  if (!found) return;
  std::set<std::string> live;
  for (const LockInfo& info : *found) {
    const auto node = node_of(info);
    if (node && node->alive) live.insert(node->id);
  }
  for (const LockInfo& info : *found) {
    if (info.note.text.empty() || live_holder(info) != nullptr) continue;
    if (info.note.ordinal + kRemembered.count() > to_millis(now) / 1000) continue;
    auto name = parse_key(info.key);
    // A live node may have other notes, which nobody holds: keep them.
    if (!name || name->resources.empty() || live.contains(name->resources.front())) continue;
    name->predicate = "forgetting";
    auto lease =
        locks.try_acquire(*name, {.ttl = Millis(5'000), .if_ordinal_below = info.note.ordinal + 1});
    if (lease) (void)lease->release({.note = {.ordinal = 0, .text = ""}});
  }
}

}  // namespace node
}  // namespace baton
