#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/kubernetes/lease_object.h"

namespace baton::store::kubernetes {

// A name at one version of its Lease, with all times on our own clock.
struct CachedName {
  LeaseObject lease;
  core::NameState state;
  Timings timings;
  std::string damage;  // what is wrong with it; then there is no state
};

// The records that this client has seen of the names that it was asked for. Expiry is judged by it:
// a record that is still the same counts from when it was first seen. Forgetting a name is safe;
// its records then count anew. Calls that take in records answer with the waiters that they may
// have freed. Thread-safe.
class NameCache {
 public:
  using Wakes = std::vector<core::Wake>;

  [[nodiscard]] std::shared_ptr<const CachedName> get(const std::string& key);

  // Takes in an answer of the server. `learnt` is the record in the cache now, which may be newer.
  Wakes learn(const std::string& key, LeaseObject lease, const ClockReading& now,
              std::shared_ptr<const CachedName>& learnt);

  // When the server last told what it is, by answering or by a watch: on the clock of all times.
  [[nodiscard]] core::StoreTime told_at(const std::string& key);

  // Takes in what a watch told of the Lease of that name. Most of it is read only when it is
  // needed.
  Wakes heard(const std::string& name, std::uint64_t version, const std::string& wake,
              std::string_view text, const ClockReading& now);
  Wakes heard_of_end(const std::string& name, std::uint64_t version);

  // Takes in a record that we wrote ourselves and therefore know exactly.
  void wrote(const std::string& key, std::shared_ptr<const CachedName> known, core::StoreTime now);

  // The same Lease, with what we have not written yet.
  void amend(const std::string& key, std::shared_ptr<const CachedName> known);

  // There is no Lease any more. `version`: of the last one that is known to be gone.
  void forget(const std::string& key, std::uint64_t version);

  // Reads a Lease by what is known of it, and keeps nothing.
  [[nodiscard]] CachedName read(const std::string& key, LeaseObject lease, const ClockReading& now);

 private:
  struct Entry {
    std::shared_ptr<const CachedName> known;
    core::StoreTime read_at{0};
    core::StoreTime told_at{0};
    std::string wake;
    std::string newer;  // heard and not read yet
    std::uint64_t newer_version = 0;
    ClockReading newer_at;
    std::uint64_t used = 0;

    [[nodiscard]] std::uint64_t version() const;
    void read_newer(const std::string& key);
  };
  void make_room();
  void erase(const std::string& key);

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;     // by key
  std::unordered_map<std::string, std::string> keys_;  // by the name of the Lease
  std::uint64_t uses_ = 0;
};

}  // namespace baton::store::kubernetes
