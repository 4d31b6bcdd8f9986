#include "apps/documents/common/problem.h"

#include "apps/documents/common/work.h"

namespace baton::documents {

http::Response problem(int status, std::string_view title, std::string_view detail,
                       const std::vector<FieldProblem>& errors) {
  nlohmann::json body = {
      {"type", "about:blank"}, {"title", title}, {"status", status}, {"detail", detail}};
  for (const FieldProblem& error : errors) {
    body["errors"].push_back({{"field", error.field}, {"problem", error.problem}});
  }
  return {.status = status, .body = dump(body) + "\n", .content_type = "application/problem+json"};
}

}  // namespace baton::documents
