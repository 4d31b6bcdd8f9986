#include "apps/documents/common/api_document.h"

#include "apps/documents/common/openapi.json.h"
#include "json/json.h"

namespace baton::documents {
namespace {

constexpr const char* kEveryOperation = "x-every-operation";

}  // namespace

std::string api_document(const std::string& service, std::string_view own) {
  auto api = parse_json_or_throw(embedded::apps_documents_common::openapi_json);
  if (!own.empty()) api.merge_patch(parse_json_or_throw(own));
  api["info"]["title"] = "documents " + service;
  const auto answers = api.at(kEveryOperation);
  api.erase(kEveryOperation);
  for (auto& path : api.at("paths")) {
    for (auto& operation : path) {
      auto& responses = operation.at("responses");
      for (const auto& [status, answer] : answers.items()) {
        if (!responses.contains(status)) responses[status] = answer;
      }
    }
  }
  return api.dump(2) + "\n";
}

}  // namespace baton::documents
