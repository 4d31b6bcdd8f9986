#include "http/refusals.h"

namespace baton::http {

Response too_busy(const Refusal& refusal, std::string_view message) {
  Response response = refusal(503, "busy", message);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response too_many_pending(const Refusal& refusal) {
  Response response =
      refusal(429, "too_many_requests", "too many requests are under way; try again");
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response no_route(const Refusal& refusal, const Router::Match& match) {
  if (match.allowed.empty()) return refusal(404, "not_found", "there is no such path");
  Response response = refusal(405, "method_not_allowed", "this path takes another method");
  response.headers.emplace_back("Allow", match.allowed);
  return response;
}

}  // namespace baton::http
