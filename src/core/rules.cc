#include <algorithm>

#include "baton/name.h"
#include "core/apply.h"

namespace baton::core {
namespace {

using Rule = std::optional<std::string>;

Rule broken_ask(const Request& request) {
  if (request.targets.empty()) return "a request names at least one lock";
  if (request.targets.size() > kMaxSet) {
    return "a request names at most " + std::to_string(kMaxSet) + " locks";
  }
  for (std::size_t i = 0; i < request.targets.size(); ++i) {
    const std::string& key = request.targets[i].key;
    // Escapes can make three bytes of one.
    if (key.empty() || key.size() > 3 * kMaxNameBytes || !is_valid_utf8_text(key)) {
      return "a key is empty, too long or not text";
    }
    if (!is_mode(request.targets[i].mode)) return "unknown mode";
    for (std::size_t j = 0; j < i; ++j) {
      if (request.targets[j].key == key) return "a request names each lock once";
    }
  }
  return std::nullopt;
}

Rule broken_text(const Request& request) {
  for (const auto* text :
       {&request.predicate, &request.owner, &request.channel, &request.to, &request.reason}) {
    if (text->size() > kMaxTextBytes || !is_valid_utf8_text(*text)) {
      return "owner, channel, predicate, target and reason are text of at most " +
             std::to_string(kMaxTextBytes) + " bytes";
    }
  }
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.metadata) {
    bytes += name.size() + value.size();
    if (!is_valid_utf8_text(name) || !is_valid_utf8_text(value)) return "metadata is not text";
  }
  if (bytes > kMaxMetadataBytes) {
    return "metadata has at most " + std::to_string(kMaxMetadataBytes) + " bytes";
  }
  return std::nullopt;
}

Rule broken_note(const Request& request) {
  const auto& change = request.change;
  if (change.text) {
    const bool reserved = request.targets[0].key.starts_with(std::string(kReservedRegion) + ":");
    const std::size_t limit = reserved ? kMaxReservedNoteBytes : kMaxNoteBytes;
    if (change.text->size() > limit)
      return "a note has at most " + std::to_string(limit) + " bytes";
    if (!is_valid_utf8_text(*change.text)) return "a note is UTF-8 text";
  }
  if (change.ordinal && *change.ordinal < 0) return "an ordinal is not negative";
  if (request.if_ordinal_below && *request.if_ordinal_below < 0)
    return "an ordinal is not negative";
  return std::nullopt;
}

bool outside(Millis value, Millis most) { return value < Millis{0} || value > most; }

Rule broken_time(const Request& request) {
  if (request.verb == Verb::acquire && (request.ttl <= Millis{0} || request.ttl > kMaxTtl)) {
    return "a TTL is above zero and at most 24 h";
  }
  if (outside(request.queue_ttl, kMaxWait) || outside(request.claim_within, kMaxWait) ||
      outside(request.tombstone_ttl, kMaxWait) || outside(request.at_least_for, kMaxTtl)) {
    return "a time span is from zero to 24 h";
  }
  if (request.verb == Verb::acquire && request.queue_ttl > Millis{0} &&
      request.claim_within <= Millis{0}) {
    return "a request that may wait says how long a hand-off may take";
  }
  return std::nullopt;
}

}  // namespace

Rule broken_rule(const Request& request) {
  if (auto rule = broken_ask(request)) return rule;
  const bool nameless = request.verb == Verb::get || request.verb == Verb::break_;
  if (request.grant.empty() && !nameless) return "a request names its grant";
  if (nameless && request.targets.size() != 1) return "get and break take one lock";
  if (!request.to.empty() && request.targets.size() != 1) return "a transfer takes one lock";
  if (auto rule = broken_text(request)) return rule;
  if (auto rule = broken_note(request)) return rule;
  return broken_time(request);
}

Rule beyond(const Capabilities& can, const Request& request) {
  const bool names_modes = request.verb == Verb::acquire || request.verb == Verb::convert;
  if (request.verb == Verb::convert && !can.convert) return "this store cannot convert a lock";
  if (request.targets.size() > can.max_set) {
    return can.max_set == 1
               ? std::string("this store takes one name at a time: no sets and no parents")
               : "this store takes at most " + std::to_string(can.max_set) + " names at once";
  }
  for (const Target& target : request.targets) {
    if (!names_modes || std::ranges::find(can.modes, target.mode) != can.modes.end()) continue;
    return "this store has no mode " + std::string(long_name(target.mode));
  }
  if (!request.to.empty() && !can.transfer) return "this store cannot hand over to a named node";
  if (!can.notes && (request.if_ordinal_below || !request.change.empty())) {
    return "this store keeps no notes";
  }
  return std::nullopt;
}

}  // namespace baton::core
