#include "store/redis/grant_bytes.h"

#include <cstdint>
#include <stdexcept>

namespace baton::store::redis {

GrantBytes::GrantBytes(GrantId grant) : size_(grant.empty() ? 0 : 16) {
  for (int i = 0; i < 8; ++i) {
    bytes_[static_cast<std::size_t>(7 - i)] = static_cast<char>(grant.high >> (8 * i));
    bytes_[static_cast<std::size_t>(15 - i)] = static_cast<char>(grant.low >> (8 * i));
  }
}

GrantId grant_in(std::string_view bytes) {
  if (bytes.size() != 16) throw std::runtime_error("a broken grant id");
  std::uint64_t halves[2] = {0, 0};
  for (std::size_t i = 0; i < 16; ++i) {
    halves[i / 8] = halves[i / 8] << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return {halves[0], halves[1]};
}

}  // namespace baton::store::redis
