#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/kubernetes/lease_api.h"

namespace baton::store::kubernetes {

// Nobody may believe in a grant if the schema that it was made under was read longer ago than this;
// and a change of the schema is answered only when every client has noticed. Kubernetes cannot
// write one object on condition of another.
inline constexpr Millis kSchemaLag{1000};

// The version of the schema, which every acquire depends on and which hardly ever changes: read in
// the background while the request itself is under way. Thread-safe.
class SchemaVersion {
 public:
  explicit SchemaVersion(LeaseApi& api) : api_(api) {}
  ~SchemaVersion();
  SchemaVersion(const SchemaVersion&) = delete;
  SchemaVersion& operator=(const SchemaVersion&) = delete;

  // Asks the server.
  [[nodiscard]] Result<std::int64_t> ask(Deadline deadline);

  // The last one known; if that was a while ago, a new look begins.
  [[nodiscard]] std::int64_t guess();

  // The version as it is now, give or take kSchemaLag.
  [[nodiscard]] Result<std::int64_t> confirm(Deadline deadline);

  void wrote(std::int64_t version);

 private:
  void look_loop(const std::stop_token& stop);
  void keep(std::int64_t version, Instant asked);

  LeaseApi& api_;
  std::mutex mutex_;
  std::condition_variable_any signal_;
  std::int64_t version_ = 0;
  Instant asked_{};      // when the look began that found it
  bool wanted_ = false;  // a look is asked for or under way
  std::jthread thread_;
};

}  // namespace baton::store::kubernetes
