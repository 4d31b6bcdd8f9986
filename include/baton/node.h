#pragma once

// Who is there. Every process of a fleet holds the lock lock:X:node:alive:{id} for as long as it
// lives, with what it is as metadata, so the live nodes are one find, and a node that stops
// renewing is gone within its TTL.
//
//   auto node = baton::Node::join(locks, {.role = "warehouse"});
//   const auto others = baton::live_nodes(locks).value();

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baton/locks.h"

namespace baton {

// A time of the wall clock: for people, and for schedules that people write.
using WallTime = std::chrono::system_clock::time_point;

inline constexpr std::string_view kNodeSubject = "node";
inline constexpr std::string_view kNodePredicate = "alive";

struct NodeOptions {
  std::string id;    // unique in the fleet; default: the owner of the client, host:pid
  std::string role;  // what the process is: schedulers share work among nodes of one role
  std::string version;
  std::string region = std::string(kDefaultRegion);
  Millis ttl{10'000};
  Metadata metadata;  // more to show with it, such as a zone

  // Told when the registration is there and when it is lost (and why), on a thread of the node. It
  // must not block.
  std::function<void(bool alive, const std::string& why)> on_change;
  Clock* clock = nullptr;  // the one of the client
  std::function<WallTime()> wall_clock;
};

// What the registry says about a node.
struct NodeInfo {
  std::string id;
  std::string role;
  std::string host;
  std::int64_t pid = 0;
  std::string version;
  WallTime started{};
  bool alive = false;    // false: it stopped renewing and did not leave
  Token token = 0;       // the rest only of live ones
  Millis alive_for{0};   // since it joined
  Millis expires_in{0};  // unless it renews
  Metadata metadata;     // all of it, with host, pid, start, version and role
};

// The registration of this process, kept up in the background: a registration that was lost, or
// that the store could not be reached for, is tried again until it is there. Movable; the
// destructor leaves. Thread-safe.
class BATON_EXPORT Node {
 public:
  // An error only for what cannot succeed later: a bad id, a TTL out of range, a policy that
  // forbids it. If another live process has the id, this one stays out until that is gone.
  static Result<Node> join(LockClient locks, NodeOptions options = {});

  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();

  [[nodiscard]] const std::string& id() const;
  [[nodiscard]] const std::string& role() const;
  [[nodiscard]] WallTime started() const;
  [[nodiscard]] bool alive() const;   // registered right now
  [[nodiscard]] Token token() const;  // of the registration; 0 while there is none

  // Gone for the others at once. Idempotent.
  void leave();

 private:
  class Impl;
  explicit Node(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The nodes that are there now, ordered by id. One find.
[[nodiscard]] BATON_EXPORT Result<std::vector<NodeInfo>> live_nodes(
    LockClient& locks, const std::string& region = std::string(kDefaultRegion));

// Also those that went without leaving. They are forgotten a day later, when another joins.
[[nodiscard]] BATON_EXPORT Result<std::vector<NodeInfo>> known_nodes(
    LockClient& locks, const std::string& region = std::string(kDefaultRegion));

}  // namespace baton
