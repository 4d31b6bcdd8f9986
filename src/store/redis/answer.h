#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/lock_table.h"

namespace baton::store::redis {

// What apply.lua answered. Reading throws std::runtime_error if it makes no sense.
struct Answer {
  std::int64_t server_time = 0;  // microseconds
  bool late = false;             // it came too late, and nothing has happened
  std::vector<Reply> replies;    // denied: the name's value is damaged; invalid: no tokens
};
[[nodiscard]] Answer read_answer(std::string_view bytes, const std::vector<const Request*>& asked);

// A name's value as stored.
[[nodiscard]] core::NameState read_value(std::string_view value);

}  // namespace baton::store::redis
