#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/kubernetes/lease_object.h"

namespace baton::store::kubernetes {

// A name at one version of its Lease, with all times on our own clock.
struct Known {
  LeaseObject lease;
  core::NameState state;
  Timings timings;
  std::string damage;  // what is wrong with it; then there is no state
};

// What this client has seen of the names that it was asked for. It is what expiry is judged by: a
// record that is still the same counts from when it was first seen. Forgetting a name is safe; its
// records then count anew. Thread-safe.
class NameCache {
 public:
  [[nodiscard]] std::shared_ptr<const Known> get(const std::string& key) const;

  // Takes in what the server has, and says who may have become able to go on by it. `learnt` is
  // what the cache has now, which may be newer.
  std::vector<core::Wake> learn(const std::string& key, LeaseObject lease, const Moment& now,
                                std::shared_ptr<const Known>& learnt);

  // What we wrote ourselves and therefore know exactly.
  void wrote(const std::string& key, std::shared_ptr<const Known> known);

  // There is no Lease any more. `version`: of the last one that is known to be gone.
  void forget(const std::string& key, std::uint64_t version);

  // The key of a Lease if it is one that this client was asked for.
  [[nodiscard]] std::string key_of(const std::string& object_name) const;

  // Reads a Lease by what is known of it, and keeps nothing.
  [[nodiscard]] Known read(const std::string& key, LeaseObject lease, const Moment& now) const;

 private:
  struct Entry {
    std::shared_ptr<const Known> known;
    std::uint64_t used = 0;
  };
  void make_room();

  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, Entry> entries_;  // by key
  std::unordered_map<std::string, std::string> keys_;       // by the name of the Lease
  mutable std::uint64_t uses_ = 0;
};

}  // namespace baton::store::kubernetes
