#include "store/redis/msgpack.h"

#include <bit>
#include <cmath>
#include <stdexcept>

#include <endian.h>

namespace baton::store::redis {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("an unexpected kind of value"); }

// Lua's numbers: whole ones, below 2^53.
std::int64_t whole(double value) {
  if (!(std::abs(value) < 9.1e15) || value != std::floor(value)) refuse();
  return static_cast<std::int64_t>(value);
}

}  // namespace

void Packer::big_endian(std::uint64_t value, int bytes) {
  const std::uint64_t all = htobe64(value << (64 - 8 * bytes));
  bytes_.append(reinterpret_cast<const char*>(&all), static_cast<std::size_t>(bytes));
}

Packer& Packer::array(std::size_t size) {
  if (size < 16) {
    put(static_cast<std::uint8_t>(0x90 | size));
  } else {
    put(0xDC);
    big_endian(size, 2);
  }
  return *this;
}

Packer& Packer::number(std::int64_t value) {
  if (value >= 0 && value < 128) {
    put(static_cast<std::uint8_t>(value));
  } else {
    put(0xD3);
    big_endian(static_cast<std::uint64_t>(value), 8);
  }
  return *this;
}

Packer& Packer::real(std::int64_t value) {
  put(0xCB);
  return bare(value);
}

Packer& Packer::bare(std::int64_t value) {
  big_endian(std::bit_cast<std::uint64_t>(static_cast<double>(value)), 8);
  return *this;
}

Packer& Packer::text(std::string_view value) {
  if (value.size() < 32) {
    put(static_cast<std::uint8_t>(0xA0 | value.size()));
  } else if (value.size() < 0x10000) {
    put(0xDA);
    big_endian(value.size(), 2);
  } else {
    put(0xDB);
    big_endian(value.size(), 4);
  }
  bytes_ += value;
  return *this;
}

Packer& Packer::flag(bool value) {
  put(value ? 0xC3 : 0xC2);
  return *this;
}

Packer& Packer::grant(GrantId value) {
  if (value.empty()) return text("");
  put(0xA0 | 16);
  big_endian(value.high, 8);
  big_endian(value.low, 8);
  return *this;
}

GrantId grant_in(std::string_view bytes) {
  if (bytes.size() != 16) throw std::runtime_error("a broken grant id");
  std::uint64_t halves[2] = {0, 0};
  for (std::size_t i = 0; i < 16; ++i) {
    halves[i / 8] = halves[i / 8] << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return {halves[0], halves[1]};
}

std::uint8_t Unpacker::byte() {
  if (done()) throw std::runtime_error("a value is cut short");
  return static_cast<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t Unpacker::big_endian(int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
  return value;
}

std::size_t Unpacker::array() {
  const std::uint8_t kind = byte();
  if ((kind & 0xF0U) == 0x90) return kind & 0x0FU;
  if (kind == 0xDC) return big_endian(2);
  if (kind == 0xDD) return big_endian(4);
  refuse();
}

void Unpacker::array_of(std::size_t size) {
  if (array() != size) throw std::runtime_error("a list of another length");
}

std::int64_t Unpacker::number() {
  const std::uint8_t kind = byte();
  if (kind < 0x80) return kind;
  if (kind >= 0xE0) return static_cast<std::int8_t>(kind);
  switch (kind) {
    case 0xCC: return static_cast<std::int64_t>(big_endian(1));
    case 0xCD: return static_cast<std::int64_t>(big_endian(2));
    case 0xCE: return static_cast<std::int64_t>(big_endian(4));
    case 0xCF: {
      const std::uint64_t value = big_endian(8);
      if (value >> 63 != 0) refuse();
      return static_cast<std::int64_t>(value);
    }
    case 0xD0: return static_cast<std::int8_t>(big_endian(1));
    case 0xD1: return static_cast<std::int16_t>(big_endian(2));
    case 0xD2: return static_cast<std::int32_t>(big_endian(4));
    case 0xD3: return static_cast<std::int64_t>(big_endian(8));
    case 0xCA: return whole(std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(4))));
    case 0xCB: return whole(std::bit_cast<double>(big_endian(8)));
    default: refuse();
  }
}

std::string_view Unpacker::text() {
  const std::uint8_t kind = byte();
  std::size_t size = 0;
  if ((kind & 0xE0U) == 0xA0) {
    size = kind & 0x1FU;
  } else if (kind == 0xD9 || kind == 0xC4) {
    size = big_endian(1);
  } else if (kind == 0xDA || kind == 0xC5) {
    size = big_endian(2);
  } else if (kind == 0xDB || kind == 0xC6) {
    size = big_endian(4);
  } else {
    refuse();
  }
  if (size > bytes_.size() - at_) throw std::runtime_error("a text is cut short");
  const std::string_view value = bytes_.substr(at_, size);
  at_ += size;
  return value;
}

bool Unpacker::is_flag() {
  if (done()) return false;
  const auto kind = static_cast<std::uint8_t>(bytes_[at_]);
  return kind == 0xC2 || kind == 0xC3;
}

bool Unpacker::flag() {
  if (!is_flag()) refuse();
  return byte() == 0xC3;
}

}  // namespace baton::store::redis
