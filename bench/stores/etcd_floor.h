#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "http_client/http_client.h"

namespace baton::bench {

// The least that etcd's gateway costs: one create of a key with a lease, and one watch event.
class EtcdFloor {
 public:
  explicit EtcdFloor(const std::string& endpoint);  // host:port
  ~EtcdFloor();
  EtcdFloor(const EtcdFloor&) = delete;
  EtcdFloor& operator=(const EtcdFloor&) = delete;

  // Creates a key that is not there, with a document's worth of bytes; milliseconds it took. Then
  // removes it again.
  [[nodiscard]] double create();

  // From before a put until its event is here, in milliseconds.
  [[nodiscard]] double event();

 private:
  std::string post(const std::string& path, const std::string& body);
  void listen(const std::stop_token& stop);

  const std::string url_;
  http_client::HttpClient http_;
  std::string lease_;
  int created_ = 0;
  std::mutex mutex_;
  std::condition_variable signal_;
  bool listening_ = false;
  int heard_ = 0;
  double heard_at_ = 0;
  std::jthread listener_;
};

}  // namespace baton::bench
