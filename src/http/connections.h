#pragma once

// Private to src/http: what all connections of a server share.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "http/server.h"

namespace baton::http {

// One of them, as far as the others are concerned. Both calls return at once.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void drain() = 0;  // ends it unless it is in a request
  virtual void abort() = 0;
};

// Closed before the I/O context goes: a reply that comes later finds nobody, safely.
struct Gate {
  std::shared_mutex mutex;
  bool open = true;
};

class Connections {
 public:
  Connections(Router router, ServerOptions options, std::shared_ptr<WorkerPool> workers);

  // Counts it from now on. False: there are too many; `refuse` says whether to tell it so.
  bool join(const std::shared_ptr<Connection>& connection, bool& refuse);
  void leave(Connection* connection);
  [[nodiscard]] std::size_t size() const;

  void drain();  // from now on, each ends after the request it is in
  bool wait_until_empty(Millis grace);
  void abort();

  const std::shared_ptr<const Router> router;
  const ServerOptions options;
  const bool on_loopback;  // listens there alone
  const std::shared_ptr<WorkerPool> workers;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::atomic<bool> stopping{false};

 private:
  template <typename Call>
  void for_each(Call call);

  static constexpr std::size_t kMaxRefusing = 64;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> all_;
};

}  // namespace baton::http
