#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "store/etcd/own_grants.h"
#include "store/etcd/record.h"

namespace baton::store::etcd {

// Between the times in documents and this process's clock.
//
// Every process writes times of its own clock, which mean nothing to another one. So the times of
// others are not looked at: their claimants live while their marks are there. Our own end exactly
// when our clock says so. A waiter that was handed the lock has its hand-off time from when this
// process first saw that; and if its process is dead, its mark goes too.
class LocalView {
 public:
  explicit LocalView(OwnGrants& own) : own_(own) {}

  // The state in times of our clock; what is dead has expired by `now`. With `remember`, what is
  // seen for the first time is remembered.
  [[nodiscard]] core::NameState localised(const std::string& key, const Record& record,
                                          core::StoreTime now, bool remember);

  // The other way: what we do not own keeps the times it had.
  using IsOwn = std::function<bool(GrantId)>;
  [[nodiscard]] static core::NameState to_be_written(core::NameState state, const Record& before,
                                                     const IsOwn& is_own);

  // After a step came true: what it made of our own claimants' times, and when a waiter was handed
  // the lock. Who is no longer there is forgotten only if the document was `written` so: else it
  // has just ended, and its time must not be lost before its marks are removed. `as_of` is the
  // version of the document, as written or as found.
  void keep(const std::string& key, const core::NameState& found, const core::NameState& state,
            const IsOwn& is_own, Revision as_of, bool written);

  // How many holders of a name are remembered for when they were first seen.
  [[nodiscard]] std::size_t sightings(const std::string& key) const;

 private:
  // A grant that lets its hand-off pass may be handed the lock again, under another token.
  using Sightings = std::map<std::pair<GrantId, Token>, core::StoreTime>;
  core::StoreTime first_seen(const Sightings& before, Sightings& now_seen,
                             const core::Holder& holder, core::StoreTime now) const;
  void localise(const std::string& key, const Marks& marks, core::Holder& holder,
                core::StoreTime now, core::StoreTime seen) const;
  void localise(const std::string& key, const Marks& marks, core::Waiter& waiter,
                core::StoreTime now) const;
  void localise(const std::string& key, const Marks& marks, core::Tombstone& tombstone,
                core::StoreTime now) const;

  void remember_handed(const std::string& key, const core::NameState& state, bool written);

  OwnGrants& own_;
  mutable std::mutex mutex_;
  std::map<std::string, Sightings> sightings_;
};

}  // namespace baton::store::etcd
