#pragma once

#include <array>
#include <string_view>

#include "baton/grant_id.h"

namespace baton::store::redis {

// A grant is sixteen bytes here, none nothing.
class GrantBytes {
 public:
  explicit GrantBytes(GrantId grant);
  [[nodiscard]] std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 16> bytes_;
  std::size_t size_;
};
[[nodiscard]] GrantId grant_in(std::string_view bytes);

}  // namespace baton::store::redis
