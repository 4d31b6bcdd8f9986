#include "apps/documents/common/problem.h"

#include <algorithm>

#include "apps/documents/common/work.h"

namespace baton::documents {
namespace {

constexpr std::size_t kMaxPointer = 128;

std::string_view title_of(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return status < 500 ? "Bad Request" : "Internal Server Error";
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// "Application/JSON ; charset=utf-8" is application/json.
std::string media_type(std::string_view content_type) {
  std::string type = lower(content_type.substr(0, content_type.find(';')));
  type.erase(type.find_last_not_of(" \t") + 1);
  return type;
}

std::size_t count(const http::Request& request, std::string_view header) {
  return static_cast<std::size_t>(
      std::count_if(request.headers.begin(), request.headers.end(),
                    [&](const auto& one) { return one.first == header; }));
}

}  // namespace

http::Response problem(int status, std::string_view detail,
                       const std::vector<FieldProblem>& errors) {
  nlohmann::json body = {
      {"type", "about:blank"}, {"title", title_of(status)}, {"status", status}, {"detail", detail}};
  for (const FieldProblem& error : errors) {
    if (body["errors"].size() == kMostErrors) break;
    body["errors"].push_back({{"field", error.field}, {"problem", error.problem}});
  }
  return {.status = status, .body = dump(body) + "\n", .content_type = "application/problem+json"};
}

http::Response refusal(int status, std::string_view /*code*/, std::string_view message) {
  return problem(status, message);
}

std::string pointer_to(std::string_view name) {
  std::string pointer = "/";
  for (const char c : name.substr(0, kMaxPointer)) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

std::optional<http::Response> refuse_other_than_json(const http::Request& request) {
  if (count(request, "content-type") > 1) {
    return problem(400, "a header cannot be used", {{"Content-Type", "is there more than once"}});
  }
  if (media_type(request.header("content-type")) != "application/json") {
    return problem(415, "send the body as application/json");
  }
  const std::string encoding = lower(request.header("content-encoding"));
  if (!encoding.empty() && encoding != "identity") {
    return problem(415, "send the body without Content-Encoding");
  }
  return std::nullopt;
}

}  // namespace baton::documents
