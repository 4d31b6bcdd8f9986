#pragma once

// Shared by all that read and write the tables of the inbox: consumers, retention, `baton inbox`
// and `baton dlq`. The tables themselves are in postgres_tables.sql and sqlite_tables.sql;
// decision.h says what is written to them when.

#include <string_view>
#include <utility>
#include <vector>

#include "sql/schema.h"

namespace baton::inbox {

// Of the tables. A database with a newer one is refused.
inline constexpr int kSchemaVersion = 1;

// inbox_events.status
namespace status {
inline constexpr std::string_view retry = "RETRY";
inline constexpr std::string_view held = "HELD";
inline constexpr std::string_view dead = "DEAD";
inline constexpr std::string_view discarded = "DISCARDED";
}  // namespace status

// processed_events.outcome
namespace outcome {
inline constexpr std::string_view done = "done";
inline constexpr std::string_view rejected = "rejected";
inline constexpr std::string_view retrying = "retrying";
inline constexpr std::string_view dead = "dead";
inline constexpr std::string_view discarded = "discarded";
}  // namespace outcome

// Without the scripts, which differ.
[[nodiscard]] inline sql::Schema schema(std::vector<std::string_view> scripts = {}) {
  return {.name = "inbox",
          .version = kSchemaVersion,
          .install_command = "baton inbox install --database URL",
          .scripts = std::move(scripts)};
}

}  // namespace baton::inbox
