#pragma once

// Private to src/http: what all connections of a server share.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "http/server.h"

namespace baton::http {

// One of them, as far as the others are concerned. All calls return at once.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void drain() = 0;      // ends it unless it is in a request
  virtual void make_room() = 0;  // the same, but a request that has just arrived is served
  virtual void abort() = 0;
};

// How many connections a server takes, so that the rest of the process keeps file descriptors.
struct ConnectionLimits {
  std::size_t serve;  // connections
  std::size_t extra;  // above them, for requests that need no worker and for saying 503

  // `descriptors` is RLIMIT_NOFILE. Half of a small limit is left to the process.
  static ConnectionLimits of(const ServerOptions& options, std::size_t descriptors);
};

// Set to false before the I/O context goes: a reply that comes later finds nobody, safely.
struct OpenFlag {
  std::shared_mutex mutex;
  bool open = true;
};

class Connections {
 public:
  Connections(Router router, ServerOptions options, std::shared_ptr<WorkerPool> workers);

  enum class Admission {
    serve,
    only_at_once,  // there are too many: it may ask what needs no worker, and is told 503 else
    turn_away,
  };
  // Counts it from now on, unless it is turned away. If there are too many, the one that has been
  // idle for longest is ended to make room: first of those that have been served before.
  Admission join(const std::shared_ptr<Connection>& connection);
  void leave(Connection* connection);

  // It waits for a request, or has got one.
  void idle(Connection* connection, bool served_before);
  void busy(Connection* connection);

  [[nodiscard]] std::size_t size() const;

  void drain();  // from now on, each ends after the request it is in
  bool wait_until_empty(Millis grace);
  void abort();

  const std::shared_ptr<const Router> router;
  const ServerOptions options;
  const ConnectionLimits limits;
  const bool on_loopback;  // listens there alone
  const std::shared_ptr<WorkerPool> workers;
  const std::shared_ptr<OpenFlag> open_flag = std::make_shared<OpenFlag>();
  // Requests that a handler has got and not answered.
  const std::shared_ptr<std::atomic<std::size_t>> pending =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<bool> stopping{false};

 private:
  struct Member {
    std::weak_ptr<Connection> connection;
    std::uint64_t idle = 0;  // its number in one of the two below; 0: in none
  };
  using Idle = std::map<std::uint64_t, Connection*>;  // the longest idle first

  template <typename Call>
  void for_each(Call call);
  std::shared_ptr<Connection> take_idle();
  void forget_idle(Member& member);

  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::unordered_map<Connection*, Member> all_;
  Idle served_;  // idle since they were answered
  Idle silent_;  // have not asked for anything yet
  std::uint64_t last_idle_ = 0;
};

}  // namespace baton::http
