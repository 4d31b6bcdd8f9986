#include "cli/lock_view.h"

#include "baton/name.h"
#include "cli/output.h"

namespace baton::cli {

std::string shown_name(const std::string& key) {
  const auto name = parse_key(key);
  if (!name) return key;
  std::string out = print_path(*name);
  if (name->region != kDefaultRegion) out += " (" + name->region + ")";
  return out;
}

std::string shown_state(const HolderInfo& holder) {
  if (holder.revoked) return holder.reason.empty() ? "revoked" : "revoked: " + holder.reason;
  if (!holder.claimed) return "handed over, not yet taken";
  if (holder.released) return "released, stays taken";
  return "held";
}

void write_json(JsonWriter& json, const HolderInfo& holder) {
  json.begin_object()
      .field("grant", to_string(holder.grant))
      .field("mode", long_name(holder.mode))
      .field("token", holder.token)
      .field("predicate", holder.predicate)
      .field("owner", holder.owner)
      .field("ttl_ms", holder.ttl.count())
      .field("held_for_ms", holder.held_for.count())
      .field("expires_in_ms", holder.expires_in.count())
      .field("claimed", holder.claimed)
      .field("released", holder.released)
      .field("revoked", holder.revoked);
  if (holder.revoked) json.field("reason", holder.reason);
  json.key("metadata").begin_object();
  for (const auto& [key, value] : holder.metadata) json.field(key, value);
  json.end_object().end_object();
}

void write_json(JsonWriter& json, const LockInfo& info) {
  json.begin_object().field("key", info.key);
  if (const auto name = parse_key(info.key)) {
    json.field("name", print_path(*name)).field("region", name->region);
    json.field("subject", name->subject).key("resources").begin_array();
    for (const auto& resource : name->resources) json.value(resource);
    json.end_array();
  }
  if (!info.damage.empty()) json.field("damage", info.damage);
  json.key("holders").begin_array();
  for (const auto& holder : info.holders) write_json(json, holder);
  json.end_array().field("waiting", info.waiting).key("waiters").begin_array();
  for (const auto& waiter : info.waiters) {
    json.begin_object()
        .field("grant", to_string(waiter.grant))
        .field("mode", long_name(waiter.mode))
        .field("predicate", waiter.predicate)
        .field("owner", waiter.owner)
        .field("converting", waiter.converting)
        .end_object();
  }
  json.end_array().key("note").begin_object();
  json.field("ordinal", info.note.ordinal).field("text", info.note.text);
  json.end_object().end_object();
}

}  // namespace baton::cli
