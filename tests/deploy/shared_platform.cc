#include "deploy/shared_platform.h"

namespace baton::test {

void submit_every_fate(const Platform& platform) {
  (void)platform.submit(a_document());
  (void)platform.submit(a_document("A letter that takes three attempts", "flaky"));
  (void)platform.submit(a_document("A letter that nobody can read", "poison"));
  auto forbidden = a_document("A forbidden letter");
  forbidden["content"] = "this is malware";
  (void)platform.submit(forbidden);
}

Platform& shared_platform() {
  static Platform platform;
  static const bool submitted = [] {
    submit_every_fate(platform);
    if (!platform.verify().at("ok")) throw std::runtime_error("the platform is not in order");
    return true;
  }();
  (void)submitted;
  return platform;
}

std::string metrics_of(const Platform& platform, const std::string& service) {
  const auto answer = ask(platform.port(service + "-1"), {.method = "GET", .path = "/metrics"});
  return answer && answer->status == 200 ? answer->body : "";
}

}  // namespace baton::test
