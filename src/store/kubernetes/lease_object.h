#pragma once

// The Lease of a name, as the API server has it and as we write it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"
#include "core/lock_table.h"
#include "store/kubernetes/document.h"

namespace baton::store::kubernetes {

inline constexpr std::string_view kOurLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kOurName = "baton";
// The sum of all annotations of an object may have 256 KiB; some are left to others.
inline constexpr std::size_t kMaxDocument = (std::size_t{256} << 10) - 8192;

struct LeaseObject {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::string key;
  std::string document;
  std::string wake;      // whom the last write may have freed: see print_wakes
  std::string metadata;  // JSON: what others may have put there stays there
  std::int64_t transitions = 0;
};

// Of one object in JSON; or of the `object` of a watch event, if that is what it is.
[[nodiscard]] BATON_EXPORT Result<LeaseObject> parse_lease(std::string_view json);

// "channel=grant channel=grant": short enough to be looked at without reading the whole document.
[[nodiscard]] BATON_EXPORT std::string print_wakes(const std::vector<core::Wake>& wakes);
// Those of `text` that are not in `before`.
[[nodiscard]] BATON_EXPORT std::vector<core::Wake> new_wakes(std::string_view text,
                                                             std::string_view before);

// The fields that people and other tools look at: filled in while the name has exactly one holder.
struct LeaseSpec {
  std::string holder;
  Millis ttl{0};
  ServerTime acquired{0};
  ServerTime renewed{0};
  std::int64_t transitions = 0;
};
[[nodiscard]] LeaseSpec spec_of(const core::NameState& state, const Timings& timings);

// The body of a create, or of an update of `replaced`, which says its version and uid.
[[nodiscard]] std::string print_lease(const std::string& key, const std::string& document,
                                      const std::string& wake, const LeaseSpec& spec,
                                      const LeaseObject* replaced);

}  // namespace baton::store::kubernetes
