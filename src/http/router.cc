#include "http/router.h"

#include <optional>
#include <set>
#include <stdexcept>

namespace baton::http {
namespace {

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::optional<Pairs> match(const std::vector<std::string>& pattern,
                           const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return std::nullopt;
  Pairs parameters;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_parameter(pattern[i]) && !segments[i].empty()) {
      parameters.emplace_back(pattern[i].substr(1, pattern[i].size() - 2), segments[i]);
    } else if (pattern[i] != segments[i]) {
      return std::nullopt;
    }
  }
  return parameters;
}

std::string join(const std::set<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

void Router::add(std::string method, std::string_view pattern, Handler handler, Run run) {
  add_async(
      std::move(method), pattern,
      [handler = std::move(handler)](const Request& request, const Reply& reply) {
        reply(handler(request));
      },
      run);
}

void Router::add_async(std::string method, std::string_view pattern, AsyncHandler handler,
                       Run run) {
  auto target = parse_target(pattern);
  if (!target) throw std::invalid_argument("not a path: " + std::string(pattern));
  routes_.push_back({std::move(method), std::string(pattern), std::move(target->segments),
                     std::move(handler), run});
}

Router::Match Router::find(std::string_view method, const RequestTarget& target) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  std::set<std::string> allowed;
  for (const Route& route : routes_) {
    auto parameters = match(route.segments, target.segments);
    if (!parameters) continue;
    if (route.method == wanted) {
      return {&route.handler, route.run, route.pattern, std::move(*parameters), {}};
    }
    allowed.insert(route.method);
    if (route.method == "GET") allowed.insert("HEAD");
  }
  return {.allowed = join(allowed)};
}

Pairs Router::routes() const {
  Pairs all;
  for (const Route& route : routes_) all.emplace_back(route.method, route.pattern);
  return all;
}

}  // namespace baton::http
