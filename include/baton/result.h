#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "baton/export.h"

namespace baton {

enum class Code : std::uint8_t {
  bad_name,      // a name that breaks the rules of name.h
  bad_request,   // an option out of range: TTL, mode, wait, size; a client from before a fork
  bad_url,       // a store URL that cannot be understood
  busy,          // somebody else holds it, and the caller did not want to wait
  timed_out,     // the wait ended first
  superseded,    // the note's ordinal says that somebody was there before
  denied,        // policy or schema forbids it
  deadlock,      // two conversions would wait for each other
  lost,          // the lease ended: expired, broken or taken; what was asked was not done
  unsupported,   // this store cannot do that
  unavailable,   // the store cannot be reached, or not in time
  cancelled,     // the caller's stop token fired
  fenced,        // a newer holder has written: this write is refused
  bad_store,     // no schema, a newer schema, a corrupt or read-only file: an operator must act
  unauthorized,  // the store refuses these credentials or rights
};

[[nodiscard]] BATON_EXPORT std::string_view to_string(Code code);

// What went wrong and what the caller can do about it. The message is one line for people.
struct Error {
  Code code = Code::unavailable;
  std::string message;
  bool retryable = false;  // asking again later may succeed
  bool in_doubt = false;   // it may have happened all the same
  std::chrono::milliseconds retry_after{0};
};

// A value or an Error. value() on an error throws std::runtime_error with its message: for tests
// and main functions; ask first everywhere else.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(const T& value) : content_(std::in_place_index<0>, value) {}          // NOLINT
  Result(T&& value) : content_(std::in_place_index<0>, std::move(value)) {}    // NOLINT
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  explicit operator bool() const { return content_.index() == 0; }
  [[nodiscard]] bool has_value() const { return content_.index() == 0; }

  T& value() & { return require(), std::get<0>(content_); }
  const T& value() const& { return require(), std::get<0>(content_); }
  T&& value() && { return require(), std::get<0>(std::move(content_)); }

  T& operator*() & { return *std::get_if<0>(&content_); }
  const T& operator*() const& { return *std::get_if<0>(&content_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&content_)); }
  T* operator->() { return std::get_if<0>(&content_); }
  const T* operator->() const { return std::get_if<0>(&content_); }

  Error& error() { return std::get<1>(content_); }
  [[nodiscard]] const Error& error() const { return std::get<1>(content_); }

 private:
  void require() const {
    if (content_.index() != 0) throw std::runtime_error(std::get<1>(content_).message);
  }
  std::variant<T, Error> content_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT

  explicit operator bool() const { return !failed_; }
  [[nodiscard]] bool has_value() const { return !failed_; }
  void value() const {
    if (failed_) throw std::runtime_error(error_.message);
  }
  Error& error() { return error_; }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace baton
