#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/backoff.h"
#include "store/redis/connection.h"

namespace baton::store::redis {

// Renewals have a connection of their own: a queue of other requests must not cost a lease. One
// that changes a note is such a request. While that connection cannot be opened (the server takes
// no more clients, or this process has no descriptor left), renewals share those of requests.
enum class Lane { requests, renewals, shared };

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

 private:
  const Settings& settings_;
  std::map<Endpoint, std::unique_ptr<Connection>> connections_;
  core::Backoff backoff_{Millis(20), Millis(2000)};
  Instant next_try_{};
  bool brief_ = false;
};

// Two connection sets for requests and one for renewals. Thread-safe.
class Pool {
 public:
  explicit Pool(const Settings& settings)
      : settings_(settings),
        sets_{ConnectionSet(settings), ConnectionSet(settings), ConnectionSet(settings)} {}

  // A connection set for one caller, back in the pool at the end of the scope.
  class Borrowed {
   public:
    Borrowed(Pool& pool, std::size_t index) : pool_(&pool), index_(index) {}
    Borrowed(Borrowed&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed() {
      if (pool_ != nullptr) pool_->give_back(index_);
    }
    ConnectionSet& operator*() const { return pool_->sets_[index_]; }
    ConnectionSet* operator->() const { return &pool_->sets_[index_]; }

   private:
    Pool* pool_;
    std::size_t index_;
  };

  // Waits for a free connection set until the deadline. With Lane::shared: for one of requests that
  // is connected, and not at all if none is.
  Result<Borrowed> take(Lane lane, Deadline deadline);

 private:
  [[nodiscard]] std::optional<std::size_t> free_set(Lane lane) const;
  void give_back(std::size_t index);

  const Settings& settings_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::array<ConnectionSet, 3> sets_;
  std::array<bool, 3> taken_{};
};

}  // namespace baton::store::redis
