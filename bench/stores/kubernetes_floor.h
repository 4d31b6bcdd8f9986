#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "support/kube_server.h"

namespace baton::bench {

// The least that an API server costs: one create of a Lease like ours, and one watch event.
class KubernetesFloor {
 public:
  // Takes a lock of the store once, to see what its Lease looks like.
  KubernetesFloor(const test::KubeServer& server, const std::string& space);

  // Creates a Lease that is not there; milliseconds it took. Then removes it again.
  [[nodiscard]] double create();

  // From before an update of a Lease until its event is here, in milliseconds.
  [[nodiscard]] double event();

 private:
  [[nodiscard]] std::string send(const std::string& method, const std::string& path,
                                 const std::string& body);
  [[nodiscard]] std::string lease(const std::string& name, const std::string& version) const;
  void listen(const std::stop_token& stop);

  const test::KubeServer& server_;
  const std::string leases_;  // the path of all
  http_client::HttpClient http_;
  std::string template_;  // JSON
  std::string version_;   // of the Lease whose events are heard
  int created_ = 0;
  std::mutex mutex_;
  std::condition_variable signal_;
  int heard_ = 0;
  double heard_at_ = 0;
  std::jthread listener_;
};

}  // namespace baton::bench
