#include "apps/gateway/object_routes.h"

#include "apps/gateway/json.h"

namespace baton::gateway {
namespace {

constexpr std::size_t kMaxListed = 1000;

http::Response no_objects(const Error& error) {
  return unavailable("the store of the objects does not answer", error);
}

// `list` asks for the objects of a phase, or of all.
template <typename List>
http::Response show_list(const http::Request& asked, List list) {
  std::optional<Phase> phase;
  if (const auto* text = http::find(asked.query, "phase")) {
    phase = parse_phase(*text);
    if (!phase) {
      return http::error_response(400, "bad_request",
                                  "phase is Pending, Running, Completed or Failed");
    }
  }
  auto objects = list(phase);
  if (!objects) return no_objects(objects.error());
  return {.body = to_json(*objects)};
}

template <typename Object>
http::Response show_one(const Result<std::optional<Object>>& object, const char* none) {
  if (!object) return no_objects(object.error());
  if (!*object) return http::error_response(404, "not_found", none);
  return {.body = to_json(**object)};
}

}  // namespace

void add_object_routes(http::Router& router, const std::shared_ptr<ObjectStore>& objects) {
  router.add("GET", "/requests", [objects](const http::Request& asked) {
    return show_list(asked, [&](auto phase) { return objects->requests(phase, kMaxListed); });
  });
  router.add("GET", "/requests/{name}", [objects](const http::Request& asked) {
    return show_one(objects->request(std::string(asked.parameter("name"))),
                    "there is no such request");
  });
  router.add("GET", "/executions", [objects](const http::Request& asked) {
    return show_list(asked, [&](auto phase) { return objects->executions(phase, kMaxListed); });
  });
  router.add("GET", "/executions/{name}", [objects](const http::Request& asked) {
    return show_one(objects->execution(std::string(asked.parameter("name"))),
                    "there is no such execution");
  });
}

}  // namespace baton::gateway
