#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "baton/grant_id.h"

namespace baton::store::redis {

// The part of MessagePack that the scripts and the client use. Not msgpack-cxx: it unpacks into a
// tree on the heap, five times slower for a reply of three values, and its header takes two seconds
// to compile.
class Packer {
 public:
  explicit Packer(std::string& out) : bytes_(out) {}
  Packer& array(std::size_t size);
  Packer& number(std::int64_t value);
  Packer& real(std::int64_t value);  // as a double, which has one length
  Packer& bare(std::int64_t value);  // the same without its kind
  Packer& text(std::string_view value);
  Packer& flag(bool value);
  Packer& grant(GrantId value);  // a text of sixteen bytes, or none

 private:
  void put(std::uint8_t byte) { bytes_ += static_cast<char>(byte); }
  void big_endian(std::uint64_t value, int bytes);

  std::string& bytes_;
};

// Reads one value after the other; throws std::runtime_error where another kind stands, or the
// text ends.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool done() const { return at_ == bytes_.size(); }
  std::size_t array();
  void array_of(std::size_t size);
  std::int64_t number();
  std::string_view text();
  bool flag();
  bool is_flag();  // looks only

 private:
  std::uint8_t byte();
  std::uint64_t big_endian(int bytes);

  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Reads a grant that Packer::grant wrote. Throws std::runtime_error if it is anything else.
[[nodiscard]] GrantId grant_in(std::string_view bytes);

}  // namespace baton::store::redis
