#pragma once

// The statements of the store, and how their parameters get their values.
//
// The SQL is in statements/, a file each, with parameters by name: `:ttl` is the TTL of the
// request, `:ttl[]` an array with the TTL of each request. `:now` is the server's clock in
// microseconds since 1970, or that of a test.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "baton/store.h"
#include "core/lock_table.h"
#include "store/postgres/connection.h"

namespace baton::store::postgres {

// batch.h says which request takes which of them.
enum class StatementId : std::uint8_t {
  acquire,
  busy,
  acquire_new,
  acquire_many,
  acquire_new_many,
  acquire_noted,
  claim,
  renew,
  release,
  release_many,
  release_noted,
  get,
  apply_one,
  apply,
  find,
  sweep,
};

// The statement with numbered parameters, as the server takes it.
[[nodiscard]] const Statement& statement(StatementId id);

using Batch = std::vector<const Request*>;

// The time that a test gives instead of the server's clock.
using TestClock = std::optional<core::StoreTime>;

// The values that these requests give the parameters of a statement. Parameters that are no array
// are those of the first request.
[[nodiscard]] Params bind(StatementId id, const Batch& requests, TestClock now);

// The values of a statement that serves no request: find or sweep.
struct NamedValue {
  std::string_view name;
  std::variant<bool, std::int32_t, std::int64_t, std::string_view> value;
};
[[nodiscard]] Params bind(StatementId id, std::initializer_list<NamedValue> values, TestClock now);

// The NOTIFY channel that stands for a channel of the seam: short, letters and digits only.
[[nodiscard]] std::string notify_channel(std::string_view channel);

// The lock schema's version that the request depends on; nothing if it does not depend on any.
[[nodiscard]] std::optional<std::int64_t> schema_version_of(const Request& request);

}  // namespace baton::store::postgres
