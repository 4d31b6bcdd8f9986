#pragma once

// Answers that say what is wrong: application/problem+json of RFC 9457.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace baton::documents {

struct FieldProblem {
  std::string field;    // as a JSON pointer, or the name of a header or parameter
  std::string problem;  // what is wrong with it
  bool operator==(const FieldProblem&) const = default;
};

// A request with a hundred thousand wrong fields gets the first of them.
inline constexpr std::size_t kMostErrors = 20;

// The title is that of the status, as RFC 9457 wants it where the type says nothing.
[[nodiscard]] http::Response problem(int status, std::string_view detail,
                                     const std::vector<FieldProblem>& errors = {});

// For ServerOptions::refusal.
[[nodiscard]] http::Response refusal(int status, std::string_view code, std::string_view message);

// A member of an object as a JSON pointer; a long name is cut.
[[nodiscard]] std::string pointer_to(std::string_view name);

// Whether the body is JSON, as its headers say; else the answer, 415 or 400.
[[nodiscard]] std::optional<http::Response> refuse_other_than_json(const http::Request& request);

}  // namespace baton::documents
