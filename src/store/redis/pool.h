#pragma once

#include <map>
#include <memory>

#include "core/backoff.h"
#include "store/common/lane_pool.h"
#include "store/redis/connection.h"

namespace baton::store::redis {

// The connections of one caller at a time: to the server that the URL names and, in a cluster, to
// those that it sends us to. Opened when first needed and again after a failure, with a pause that
// grows.
class ConnectionSet {
 public:
  explicit ConnectionSet(const Settings& settings) : settings_(settings) {}

  Result<Connection*> to(const Endpoint& node, Deadline deadline);
  [[nodiscard]] bool connected() const;  // to the server that the URL names

  // While set, a connection is tried once and briefly, and not in the pause after a failure.
  void set_brief(bool brief) { brief_ = brief; }
  void adopt(std::unique_ptr<Connection> connection) {
    connections_[settings_.node] = std::move(connection);
  }
  void given_back() {}

 private:
  const Settings& settings_;
  std::map<Endpoint, std::unique_ptr<Connection>> connections_;
  core::Backoff backoff_{Millis(20), Millis(2000)};
  Instant next_try_{};
  bool brief_ = false;
};

using Pool = LanePool<ConnectionSet>;

}  // namespace baton::store::redis
