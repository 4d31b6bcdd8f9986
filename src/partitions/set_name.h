#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/name.h"

namespace baton::partitions {

inline constexpr std::string_view kPartitionSubject = "partition";
inline constexpr std::string_view kMemberSubject = "partition-member";
inline constexpr std::string_view kCountKey = "partitions";  // metadata of both

// A set of partitions and the names of its locks.
struct SetName {
  std::vector<std::string> parts;
  std::string region;

  [[nodiscard]] LockName partition(std::size_t number) const;
  [[nodiscard]] LockName member(const std::string& node) const;
};

[[nodiscard]] Result<SetName> parse_set(std::string_view set, std::string_view region);

[[nodiscard]] std::optional<std::size_t> parse_number(std::string_view text);

}  // namespace baton::partitions
