#include "stores/etcd_floor.h"

#include <stdexcept>

#include "http_client/base64.h"
#include "stores/paired_samples.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;
using http_client::to_base64;

constexpr std::size_t kDocumentBytes = 230;

std::string field(const std::string& text, const std::string& name) {
  const auto at = text.find("\"" + name + "\":\"");
  if (at == std::string::npos) throw std::runtime_error("etcd says no " + name);
  const auto begin = at + name.size() + 4;
  return text.substr(begin, text.find('"', begin) - begin);
}

}  // namespace

EtcdFloor::EtcdFloor(const std::string& endpoint) : url_("http://" + endpoint) {
  lease_ = field(post("/v3/lease/grant", R"({"TTL":"3600"})"), "ID");
  listener_ = std::jthread([this](const std::stop_token& stop) { listen(stop); });
  std::unique_lock lock(mutex_);
  if (!signal_.wait_for(lock, 10s, [&] { return listening_; })) {
    throw std::runtime_error("etcd does not watch");
  }
}

EtcdFloor::~EtcdFloor() = default;

std::string EtcdFloor::post(const std::string& path, const std::string& body) {
  auto answer = http_.send({.method = "POST",
                            .url = url_ + path,
                            .headers = {{"Content-Type", "application/json"}},
                            .body = body},
                           BootClock::now() + 10s);
  if (!answer) throw std::runtime_error(answer.error().message);
  if (!answer->ok()) throw std::runtime_error("etcd: " + answer->body);
  return std::move(answer->body);
}

double EtcdFloor::create() {
  const std::string key = to_base64("floor/" + std::to_string(++created_));
  const std::string body = R"({"compare":[{"key":")" + key +
                           R"(","target":"MOD","result":"EQUAL","mod_revision":"0"}],)"
                           R"("success":[{"request_put":{"key":")" +
                           key + R"(","value":")" + to_base64(std::string(kDocumentBytes, 'x')) +
                           R"(","lease":")" + lease_ + R"("}}]})";
  const double begin = milliseconds_now();
  post("/v3/kv/txn", body);
  const double took = milliseconds_now() - begin;
  post("/v3/kv/deleterange", R"({"key":")" + key + R"("})");
  return took;
}

double EtcdFloor::event() {
  const int before = [&] {
    const std::lock_guard lock(mutex_);
    return heard_;
  }();
  const double begin = milliseconds_now();
  post("/v3/kv/put", R"({"key":")" + to_base64("floor/event") + R"(","value":"eA=="})");
  std::unique_lock lock(mutex_);
  if (!signal_.wait_for(lock, 10s, [&] { return heard_ > before; })) {
    throw std::runtime_error("no event came");
  }
  return heard_at_ - begin;
}

void EtcdFloor::listen(const std::stop_token& stop) {
  const auto on_line = [&](std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (line.find("\"created\":true") != std::string_view::npos) listening_ = true;
    if (line.find("\"events\"") != std::string_view::npos) {
      heard_at_ = milliseconds_now();
      ++heard_;
    }
    signal_.notify_all();
    return true;
  };
  const std::string body = R"({"create_request":{"key":")" + to_base64("floor/event") + R"("}})";
  [[maybe_unused]] const auto ended =
      http_.stream({.method = "POST", .url = url_ + "/v3/watch", .body = body}, on_line, stop);
}

}  // namespace baton::bench
