#include "store/kubernetes/name_cache.h"

#include <algorithm>

namespace baton::store::kubernetes {
namespace {

constexpr std::size_t kMostNames = 16'384;

Known understand(const std::string& key, LeaseObject lease, const Known* before,
                 const Moment& now) {
  Known known;
  known.lease = std::move(lease);
  if (known.lease.key != key) {
    known.damage = "in a Lease that says it is of '" + known.lease.key.substr(0, 255) +
                   "': two names have the same hash, or somebody changed it";
    return known;
  }
  static const Timings kNone;
  const bool same_object = before != nullptr && before->lease.uid == known.lease.uid;
  auto state = parse_document(known.lease.document, known.lease.version,
                              same_object ? before->timings : kNone, now, known.timings);
  if (state) {
    known.state = std::move(*state);
  } else {
    known.damage = state.error().message + " (Lease " + known.lease.name + ")";
  }
  return known;
}

const core::Holder* holder_of(const Known* known, GrantId grant) {
  if (known == nullptr) return nullptr;
  const auto& holders = known->state.holders;
  const auto it = std::find_if(holders.begin(), holders.end(),
                               [&](const core::Holder& h) { return h.grant == grant; });
  return it == holders.end() ? nullptr : &*it;
}

bool somebody_left(const Known* before, const Known& now) {
  if (before == nullptr) return true;
  return std::any_of(before->state.holders.begin(), before->state.holders.end(),
                     [&](const core::Holder& was) {
                       const core::Holder* is = holder_of(&now, was.grant);
                       return is == nullptr || is->mode != was.mode;
                     });
}

// Who was promoted or revoked, and whose conversion may go on.
std::vector<core::Wake> news(const Known* before, const Known& now) {
  std::vector<core::Wake> wakes;
  for (const core::Holder& holder : now.state.holders) {
    const core::Holder* was = holder_of(before, holder.grant);
    const bool handed = holder.state == core::HolderState::handed && was == nullptr;
    const bool revoked = holder.revoked && (was == nullptr || !was->revoked);
    if (handed || revoked) wakes.push_back({holder.channel, holder.grant});
  }
  if (before == nullptr) return wakes;
  for (const core::Holder& was : before->state.holders) {
    const bool broken = holder_of(&now, was.grant) == nullptr;
    if (broken) wakes.push_back({was.channel, was.grant});
  }
  if (!somebody_left(before, now)) return wakes;
  for (const core::Waiter& waiter : now.state.waiters) {
    if (waiter.converting) wakes.push_back({waiter.channel, waiter.grant});
  }
  return wakes;
}

}  // namespace

std::shared_ptr<const Known> NameCache::get(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  it->second.used = ++uses_;
  return it->second.known;
}

std::vector<core::Wake> NameCache::learn(const std::string& key, LeaseObject lease,
                                         const Moment& now, std::shared_ptr<const Known>& learnt) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.used = ++uses_;
  if (entry.known != nullptr && entry.known->lease.version >= lease.version) {
    learnt = entry.known;
    return {};
  }
  auto known = std::make_shared<Known>(understand(key, std::move(lease), entry.known.get(), now));
  auto wakes = news(entry.known.get(), *known);
  keys_[known->lease.name] = key;
  entry.known = known;
  learnt = std::move(known);
  make_room();
  return wakes;
}

void NameCache::wrote(const std::string& key, std::shared_ptr<const Known> known) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.used = ++uses_;
  if (entry.known != nullptr && entry.known->lease.version > known->lease.version) return;
  keys_[known->lease.name] = key;
  entry.known = std::move(known);
  make_room();
}

void NameCache::forget(const std::string& key, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end() || it->second.known->lease.version > version) return;
  keys_.erase(it->second.known->lease.name);
  entries_.erase(it);
}

std::string NameCache::key_of(const std::string& object_name) const {
  const std::lock_guard lock(mutex_);
  const auto it = keys_.find(object_name);
  return it == keys_.end() ? std::string() : it->second;
}

Known NameCache::read(const std::string& key, LeaseObject lease, const Moment& now) const {
  const auto before = get(key);
  if (before != nullptr && before->lease.version == lease.version) return *before;
  return understand(key, std::move(lease), before.get(), now);
}

// Drops the half that was not used for the longest time.
void NameCache::make_room() {
  if (entries_.size() <= kMostNames) return;
  const std::uint64_t limit = uses_ - std::min<std::uint64_t>(uses_, kMostNames / 2);
  std::erase_if(entries_, [&](const auto& entry) {
    if (entry.second.used > limit) return false;
    keys_.erase(entry.second.known->lease.name);
    return true;
  });
}

}  // namespace baton::store::kubernetes
