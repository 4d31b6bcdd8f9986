#pragma once

// Answers that say what is wrong: application/problem+json of RFC 9457.

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

[[nodiscard]] http::Response problem(int status, std::string_view title, std::string_view detail,
                                     const std::vector<FieldProblem>& errors = {});

}  // namespace baton::documents
