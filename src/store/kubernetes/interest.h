#pragma once

#include <mutex>
#include <set>

#include "baton/grant_id.h"

namespace baton::store::kubernetes {

// Whether this process should follow its Leases. A process that holds a name or waits near the
// head of its queue should, to go on at once. The waiters further back would each hear of every
// step of all others, which costs the server far more than polling. Thread-safe.
class Interest {
 public:
  enum class Place { none, near, far };
  enum class Advice { listen, rest, as_it_is };

  Advice update(GrantId grant, Place place) {
    const std::lock_guard lock(mutex_);
    near_.erase(grant);
    far_.erase(grant);
    if (place == Place::near) near_.insert(grant);
    if (place == Place::far) far_.insert(grant);
    if (!near_.empty()) return Advice::listen;
    return far_.empty() ? Advice::as_it_is : Advice::rest;
  }

 private:
  std::mutex mutex_;
  std::set<GrantId> near_;
  std::set<GrantId> far_;
};

}  // namespace baton::store::kubernetes
