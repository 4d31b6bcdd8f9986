#include <algorithm>

#include "baton/name.h"
#include "core/apply.h"

namespace baton {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::granted: return "granted";
    case Outcome::queued: return "queued";
    case Outcome::busy: return "busy";
    case Outcome::superseded: return "superseded";
    case Outcome::denied: return "denied";
    case Outcome::deadlock: return "deadlock";
    case Outcome::lost: return "lost";
    case Outcome::done: return "done";
    case Outcome::invalid: return "invalid";
    case Outcome::unsupported: return "unsupported";
  }
  return "unknown";
}

std::string_view to_string(Verb verb) {
  switch (verb) {
    case Verb::acquire: return "acquire";
    case Verb::claim: return "claim";
    case Verb::renew: return "renew";
    case Verb::convert: return "convert";
    case Verb::release: return "release";
    case Verb::cancel: return "cancel";
    case Verb::break_: return "break";
    case Verb::get: return "get";
  }
  return "unknown";
}

}  // namespace baton

namespace baton::core {

std::string key_prefix(const Query& query) {
  if (query.region.empty()) return {};
  std::string prefix = escape_part(query.region) + ":";
  if (query.subject.empty()) return prefix;
  prefix += escape_part(query.subject);
  for (const auto& resource : query.resources) prefix += ":" + escape_part(resource);
  return prefix;
}

namespace {

bool name_matches(const Query& query, const std::string& key) {
  const auto name = parse_key(key);
  if (!name) return false;
  if (!query.region.empty() && name->region != query.region) return false;
  if (query.region.empty() && name->region == kReservedRegion) return false;
  if (!query.subject.empty() && name->subject != query.subject) return false;
  return name->resources.size() >= query.resources.size() &&
         std::equal(query.resources.begin(), query.resources.end(), name->resources.begin());
}

template <typename Somebody>
bool somebody_matches(const Query& query, const Somebody& who) {
  return (query.predicate.empty() || who.predicate == query.predicate) &&
         (!query.mode || who.mode == *query.mode) &&
         (query.owner.empty() || who.owner == query.owner);
}

}  // namespace

bool matches(const Query& query, const LockInfo& info) {
  if (!name_matches(query, info.key)) return false;
  // The holders of a damaged name are not known.
  if (!info.damage.empty()) return true;
  const auto hit = [&](const auto& who) { return somebody_matches(query, who); };
  if (std::any_of(info.holders.begin(), info.holders.end(), hit)) return true;
  if (std::any_of(info.waiters.begin(), info.waiters.end(), hit)) return true;
  const bool nobody_asked = query.predicate.empty() && !query.mode && query.owner.empty();
  return query.idle && nobody_asked && info.holders.empty() && info.waiting == 0 &&
         info.note != Note{};
}

}  // namespace baton::core
