#pragma once

// Where C++ ends: results and exceptions become codes, texts and structs are copied.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "baton/baton.h"
#include "baton/clock.h"
#include "baton/result.h"
#include "core/bad_request.h"

namespace baton::capi {

[[nodiscard]] int code_of(Code code);

// Fill in `out` if there is one, and give the code.
int told(baton_error* out, const Error& error) noexcept;
int told(baton_error* out, int code, std::string_view message) noexcept;
int done(baton_error* out) noexcept;

// Runs `body`, which gives a code. What it throws becomes BATON_INTERNAL.
template <typename Body>
int guarded(baton_error* out, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return told(out, BATON_INTERNAL, "out of memory");
  } catch (const std::exception& problem) {
    return told(out, BATON_INTERNAL, problem.what());
  } catch (...) {
    return told(out, BATON_INTERNAL, "an exception that is no std::exception");
  }
}

// The same for calls that give a value and no error.
template <typename Value, typename Body>
Value guarded_value(Value if_refused, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return if_refused;
  }
}

// As snprintf: writes what fits, with a NUL, and gives the whole length.
std::size_t copy_out(std::string_view text, char* buffer, std::size_t size) noexcept;

// The options of the caller as those of this version. A field that this version does not know must
// not be set, and a struct of no known size is no struct. Of one that has grown `least` is the size
// of its first version; what the caller does not have keeps its default.
template <typename Options>
Result<Options> read_struct(const Options* given, std::size_t least = sizeof(Options)) {
  constexpr std::size_t kMostBytes = 4096;
  Options options{};
  options.size = sizeof(Options);
  if (given == nullptr) return options;
  const std::size_t size = given->size;
  if (size < least || size > kMostBytes) {
    return bad_request("the size of an options struct must be set to its sizeof");
  }
  const auto* bytes = reinterpret_cast<const char*>(given);
  const std::size_t known = std::min(size, sizeof(Options));
  if (std::any_of(bytes + known, bytes + size, [](char byte) { return byte != 0; })) {
    return Error{.code = Code::unsupported,
                 .message = "an option is set that this version of libbaton does not know"};
  }
  std::memcpy(&options, given, known);
  options.size = sizeof(Options);
  return options;
}

inline std::string text_or(const char* text, std::string_view otherwise) {
  return text == nullptr ? std::string(otherwise) : std::string(text);
}

inline std::optional<std::int64_t> optional_of(const std::int64_t* number) {
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// A duration where 0 stands for the default.
inline Millis millis_or(std::int64_t given, Millis otherwise) {
  return given == 0 ? otherwise : Millis(given);
}

// Name, value, name, value, …, NULL.
Result<std::map<std::string, std::string>> read_pairs(const char* const* pairs, const char* what);

}  // namespace baton::capi
