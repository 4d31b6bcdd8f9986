#pragma once

// Parameters and rows in PostgreSQL's binary format: no quoting, no parsing.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <libpq-fe.h>

#include "baton/grant_id.h"

namespace baton::store::postgres {

enum class Type : Oid {
  boolean = 16,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  text = 25,
  uuid = 2950,
};

inline constexpr Oid kBoolArray = 1000;
inline constexpr Oid kInt2Array = 1005;
inline constexpr Oid kInt4Array = 1007;
inline constexpr Oid kTextArray = 1009;
inline constexpr Oid kInt8Array = 1016;
inline constexpr Oid kUuidArray = 2951;

constexpr Oid array_oid(Type element) {
  switch (element) {
    case Type::boolean: return kBoolArray;
    case Type::int2: return kInt2Array;
    case Type::int4: return kInt4Array;
    case Type::int8: return kInt8Array;
    case Type::text: return kTextArray;
    case Type::uuid: return kUuidArray;
  }
  return 0;
}

// The server's type for a value of this C++ type, which may be optional.
template <typename Value>
constexpr Type type_of() {
  if constexpr (requires { typename Value::value_type; } &&
                !std::is_convertible_v<Value, std::string_view>) {
    return type_of<typename Value::value_type>();
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    return Type::text;
  } else if constexpr (std::is_same_v<Value, GrantId>) {
    return Type::uuid;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return Type::boolean;
  } else {
    static_assert(std::is_integral_v<Value> && sizeof(Value) <= 8);
    return sizeof(Value) == 8 ? Type::int8 : sizeof(Value) == 4 ? Type::int4 : Type::int2;
  }
}

inline constexpr std::size_t kMaxParameters = 32;  // of one statement

// The parameters of one statement, in order.
class Params {
 public:
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

  void null() { mark({0, -1}); }
  template <typename Value>
  void add(const Value& value) {
    const std::size_t from = bytes_.size();
    put(value);
    mark({from, static_cast<int>(bytes_.size() - from)});
  }
  template <typename Value>
  void add(const std::optional<Value>& value) {
    value ? add(*value) : null();
  }

  // One array with an element for each item: get(item) gives a value or an optional.
  template <typename Items, typename Get>
  void array(Type type, const Items& items, Get get) {
    const std::size_t from = bytes_.size();
    const auto count = static_cast<std::int32_t>(std::size(items));
    put(std::int32_t{count == 0 ? 0 : 1});  // dimensions
    put(std::int32_t{1});                   // there may be nulls
    put(static_cast<std::int32_t>(type));
    if (count != 0) {
      put(count);
      put(std::int32_t{1});  // lower bound
      for (const auto& item : items) element(get(item));
    }
    mark({from, static_cast<int>(bytes_.size() - from)});
  }

  // Only the first size() elements of these are set.
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::array<const char*, kMaxParameters> values() const {
    std::array<const char*, kMaxParameters> pointers;
    for (std::size_t i = 0; i < count_; ++i) {
      pointers[i] = spans_[i].length < 0 ? nullptr : bytes_.data() + spans_[i].from;
    }
    return pointers;
  }
  [[nodiscard]] std::array<int, kMaxParameters> lengths() const {
    std::array<int, kMaxParameters> all;
    for (std::size_t i = 0; i < count_; ++i) all[i] = spans_[i].length;
    return all;
  }

 private:
  struct Span {
    std::size_t from;
    int length;
  };

  void mark(Span span) { spans_.at(count_++) = span; }

  template <typename Integer>
  void big_endian(Integer value) {
    char out[sizeof value];
    auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = sizeof value; i-- > 0; bits >>= 8) out[i] = static_cast<char>(bits & 255);
    bytes_.append(out, sizeof value);
  }
  void put(std::int16_t value) { big_endian(value); }
  void put(std::int32_t value) { big_endian(value); }
  void put(std::int64_t value) { big_endian(value); }
  void put(bool value) { bytes_ += value ? '\1' : '\0'; }
  void put(std::string_view text) { bytes_.append(text); }
  void put(const GrantId& id) {
    big_endian(id.high);
    big_endian(id.low);
  }

  template <typename Value>
  void element(const std::optional<Value>& value) {
    value ? element(*value) : put(std::int32_t{-1});
  }
  template <typename Value>
  void element(const Value& value) {
    const std::size_t from = bytes_.size();
    put(std::int32_t{0});
    put(value);
    const auto length = static_cast<std::uint32_t>(bytes_.size() - from - 4);
    for (std::size_t i = 0; i < 4; ++i) {
      bytes_[from + i] = static_cast<char>(length >> (24 - 8 * i) & 255);
    }
  }

  std::string bytes_;
  std::array<Span, kMaxParameters> spans_;
  std::size_t count_ = 0;
};

// The rows of a statement's result.
class Rows {
 public:
  Rows() = default;
  explicit Rows(PGresult* result) : result_(result) {}

  [[nodiscard]] int size() const { return result_ ? PQntuples(result_.get()) : 0; }
  // How many rows the statement wrote, whether or not it returns them.
  [[nodiscard]] int affected() const { return result_ ? std::atoi(PQcmdTuples(result_.get())) : 0; }
  [[nodiscard]] bool null(int row, int column) const {
    return PQgetisnull(result_.get(), row, column) != 0;
  }
  [[nodiscard]] std::string_view text(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  // An integer of two, four or eight bytes, or a boolean; 0 for null.
  [[nodiscard]] std::int64_t integer(int row, int column) const {
    return null(row, column) ? 0 : integer(text(row, column));
  }
  [[nodiscard]] GrantId uuid(int row, int column) const {
    const std::string_view bytes = text(row, column);
    return {static_cast<std::uint64_t>(integer(bytes.substr(0, 8))),
            static_cast<std::uint64_t>(integer(bytes.substr(8)))};
  }
  // A bigint[] without nulls.
  [[nodiscard]] std::vector<std::int64_t> integers(int row, int column) const {
    std::vector<std::int64_t> all;
    if (null(row, column)) return all;
    const std::string_view bytes = text(row, column);
    constexpr std::size_t kHeader = 20;
    for (std::size_t at = kHeader; at + 12 <= bytes.size(); at += 12) {
      all.push_back(integer(bytes.substr(at + 4, 8)));
    }
    return all;
  }

 private:
  static std::int64_t integer(std::string_view bytes) {
    std::uint64_t bits = !bytes.empty() && (bytes[0] & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (const char c : bytes) bits = bits << 8 | static_cast<unsigned char>(c);
    return static_cast<std::int64_t>(bits);
  }

  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

}  // namespace baton::store::postgres
