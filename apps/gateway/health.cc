#include "apps/gateway/health.h"

#include "apps/gateway/json.h"
#include "apps/gateway/object_routes.h"

namespace baton::gateway {
namespace {

constexpr Millis kReadyTimeout{2000};

http::Response ready(LockClient& locks, ObjectStore& objects) {
  const auto lock = locks.get({.subject = "gw-lock", .resources = {"ready"}}, kReadyTimeout);
  if (!lock) return unavailable("the store of the locks does not answer", lock.error());
  if (const auto object = objects.request("ready"); !object) {
    return unavailable("the store of the objects does not answer", object.error());
  }
  return {.body = "{\"status\":\"ready\"}\n"};
}

}  // namespace

void add_common_routes(http::Router& router, const LockClient& locks,
                       const std::shared_ptr<ObjectStore>& objects, observe::Metrics& metrics) {
  router.add(
      "GET", "/healthz",
      [](const http::Request&) { return http::Response{.body = "{\"status\":\"alive\"}\n"}; },
      http::Router::Run::at_once);
  router.add("GET", "/readyz", [client = locks, objects](const http::Request&) mutable {
    return ready(client, *objects);
  });
  router.add("GET", "/metrics", [&metrics](const http::Request&) {
    return http::Response{.body = metrics.text(),
                          .content_type = std::string(observe::Metrics::kContentType)};
  });
  add_object_routes(router, objects);
}

std::function<void(const http::Served&)> counting(observe::Metrics& metrics,
                                                  const std::string& prefix) {
  return [&metrics, name = prefix + "_http_requests_total"](const http::Served& served) {
    metrics
        .counter(name, "Answers by route and status.",
                 {{"route", served.route}, {"status", std::to_string(served.status)}})
        .add();
  };
}

}  // namespace baton::gateway
