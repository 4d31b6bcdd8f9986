#pragma once

// Replies that several verbs give, and checks of their requests.

#include <optional>
#include <string>
#include <utility>

#include "store/postgres_advisory/session_table.h"

namespace baton::store::postgres_advisory {

using core::HolderState;

inline Reply outcome(Outcome what, std::string message = {}) {
  Reply reply;
  reply.outcome = what;
  reply.message = std::move(message);
  return reply;
}

inline Reply lost(std::string why) { return outcome(Outcome::lost, std::move(why)); }

inline Error too_late() { return {.message = "no time was left for it", .retryable = true}; }

inline Reply granted(const GrantEntry& entry, Note found) {
  Reply reply = outcome(Outcome::granted);
  reply.tokens = {entry.holder.token};
  reply.note = std::move(found);
  return reply;
}

// The schema version that the store must have for it.
inline std::optional<std::int64_t> version_of(const Request& request) {
  if (request.targets[0].key == core::kSchemaKey) return std::nullopt;
  return request.schema_version;
}

}  // namespace baton::store::postgres_advisory
