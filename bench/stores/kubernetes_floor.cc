#include "stores/kubernetes_floor.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "baton/locks.h"
#include "stores/paired_samples.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kHeard = "floor-event";

std::string version_of(const std::string& lease) {
  return json::parse(lease)["metadata"]["resourceVersion"];
}

http_client::HttpSettings settings_of(const test::KubeServer& server) {
  return {.tls = {.ca_file = server.ca_file()}};
}

}  // namespace

KubernetesFloor::KubernetesFloor(const test::KubeServer& server, const std::string& space)
    : server_(server),
      leases_("/apis/coordination.k8s.io/v1/namespaces/" + space + "/leases"),
      http_(settings_of(server)) {
  LockClient locks = open(server.store_url("admin", space)).value();
  auto held = locks.acquire({.subject = "floor"}, {}).value();
  json like = json::parse(send("GET", leases_, {})).at("items").at(0);
  for (const char* of_the_server :
       {"uid", "resourceVersion", "creationTimestamp", "managedFields"}) {
    like["metadata"].erase(of_the_server);
  }
  template_ = like.dump();
  version_ = version_of(send("POST", leases_, lease(kHeard, {})));
  listener_ = std::jthread([this](const std::stop_token& stop) { listen(stop); });
  for (int i = 0; i < 100 && heard_ == 0; ++i) {
    version_ = version_of(send("PUT", leases_ + "/" + kHeard, lease(kHeard, version_)));
    std::unique_lock lock(mutex_);
    if (signal_.wait_for(lock, 100ms, [&] { return heard_ > 0; })) return;
  }
  throw std::runtime_error("the API server does not watch");
}

std::string KubernetesFloor::lease(const std::string& name, const std::string& version) const {
  json made = json::parse(template_);
  made["metadata"]["name"] = name;
  // An update that changes nothing makes no event.
  made["spec"]["leaseTransitions"] = version.empty() ? 0 : std::stoi(version);
  if (!version.empty()) made["metadata"]["resourceVersion"] = version;
  return made.dump();
}

std::string KubernetesFloor::send(const std::string& method, const std::string& path,
                                  const std::string& body) {
  auto answer = http_.send(
      {.method = method,
       .url = server_.address() + path,
       .headers = {{"Authorization", http_client::bearer_auth(test::KubeServer::token("admin"))},
                   {"Content-Type", "application/json"},
                   {"Accept", "application/json"}},
       .body = body},
      BootClock::now() + 10s);
  if (!answer) throw std::runtime_error(answer.error().message);
  if (!answer->ok()) throw std::runtime_error(method + " " + path + ": " + answer->body);
  return std::move(answer->body);
}

double KubernetesFloor::create() {
  const std::string name = "floor-" + std::to_string(++created_);
  const std::string body = lease(name, {});
  const double begin = milliseconds_now();
  (void)send("POST", leases_, body);
  const double took = milliseconds_now() - begin;
  (void)send("DELETE", leases_ + "/" + name, {});
  return took;
}

double KubernetesFloor::event() {
  const int before = [&] {
    const std::lock_guard lock(mutex_);
    return heard_;
  }();
  const std::string body = lease(kHeard, version_);
  const double begin = milliseconds_now();
  version_ = version_of(send("PUT", leases_ + "/" + kHeard, body));
  std::unique_lock lock(mutex_);
  if (!signal_.wait_for(lock, 10s, [&] { return heard_ > before; })) {
    throw std::runtime_error("no event came");
  }
  return heard_at_ - begin;
}

void KubernetesFloor::listen(const std::stop_token& stop) {
  const auto on_line = [&](std::string_view line) {
    if (line.find("\"MODIFIED\"") == std::string_view::npos) return true;
    const std::lock_guard lock(mutex_);
    heard_at_ = milliseconds_now();
    ++heard_;
    signal_.notify_all();
    return true;
  };
  [[maybe_unused]] const auto ended = http_.stream(
      {.method = "GET",
       .url = server_.address() + leases_ + "?watch=true&fieldSelector=metadata.name%3D" + kHeard,
       .headers = {{"Authorization", http_client::bearer_auth(test::KubeServer::token("admin"))}}},
      on_line, stop);
}

}  // namespace baton::bench
