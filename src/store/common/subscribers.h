#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "baton/store.h"

namespace baton::store {

// The sinks of this process by the channel that they listen to. A Watch holds its own share of it,
// so a store may be destroyed before its watches.
class Subscribers : public std::enable_shared_from_this<Subscribers> {
 public:
  std::unique_ptr<Watch> add(const std::string& channel, WakeSink& sink);

  // Calls the sinks of that channel; after a Watch is destroyed its sink is not called any more.
  void wake(const std::string& channel, std::span<const GrantId> grants);

  // Whether anybody listens to it here.
  [[nodiscard]] bool has(const std::string& channel);

  // Calls every sink with no grant named: after a gap in which wake-ups may have been missed.
  void wake_all();

 private:
  class Subscription;
  std::mutex mutex_;
  std::multimap<std::string, WakeSink*> sinks_;
};

}  // namespace baton::store
