#pragma once

// A document as it is submitted: the body of POST /documents, checked as far as it must be to be
// stored. Whether the document is any good is for validation to say.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/documents/common/problem.h"
#include "json/json.h"

namespace baton::documents::ingestion {

inline constexpr std::size_t kMaxContent = 256U << 10U;  // bytes
inline constexpr std::size_t kMaxText = 255;             // bytes: title, contentType, owner
inline constexpr std::size_t kMaxUrl = 2'048;
inline constexpr std::size_t kMaxMetadata = 8U << 10U;  // as JSON text

struct Submission {
  std::string title;
  std::string content_type;
  std::string owner;
  std::string content;  // one of the two
  std::string content_url;
  nlohmann::json metadata = nlohmann::json::object();  // of text, numbers and booleans

  // The payload of DocumentUploaded, without the id. Two submissions with one payload are the same.
  [[nodiscard]] nlohmann::json payload() const;
};

// What is wrong with a body: 400 if it is no JSON object, 422 if its fields are wrong.
struct Refused {
  int status = 422;
  std::string detail;
  std::vector<FieldProblem> errors;
};

[[nodiscard]] std::variant<Submission, Refused> parse_submission(std::string_view body);

}  // namespace baton::documents::ingestion
