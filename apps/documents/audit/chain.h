#pragma once

// The hash chain over the audit log. Each seal covers its row, its place and the seal before it:
//
//   hash(n) = SHA-256 of the JSON array [n, hash(n - 1), every column of the row]
//
// so that no row can be changed, removed, added in between or moved without every later hash
// becoming wrong. What nobody can see from the chain alone is that its end was cut off: keep the
// head that `documents audit verify` prints somewhere else, and give it to the next one.

#include <cstdint>
#include <string>

namespace baton::documents::audit {

inline constexpr const char* kGenesis =
    "0000000000000000000000000000000000000000000000000000000000000000";

struct AuditRow {
  std::int64_t id = 0;
  std::string event_id, event_type, routing_key, document_id, correlation_id, causation_id, payload;
  std::string occurred_at, recorded_at;  // RFC 3339
};

struct Seal {
  std::int64_t sequence = 0;  // from 1
  std::string hash = kGenesis;
};

[[nodiscard]] Seal seal(const Seal& previous, const AuditRow& row);

}  // namespace baton::documents::audit
