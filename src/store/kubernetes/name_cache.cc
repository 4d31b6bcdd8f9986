#include "store/kubernetes/name_cache.h"

#include <algorithm>

namespace baton::store::kubernetes {
namespace {

constexpr std::size_t kMostNames = 16'384;

// How much later than it came a record may be taken for seen, where many changes come at once.
constexpr core::StoreTime kReadEvery = Millis(200);

CachedName understand(const std::string& key, LeaseObject lease, const CachedName* before,
                      const ClockReading& now) {
  CachedName known;
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

}  // namespace

std::uint64_t NameCache::Entry::version() const {
  return std::max(newer_version, known == nullptr ? 0 : known->lease.version);
}

void NameCache::Entry::read_newer(const std::string& key) {
  if (newer.empty()) return;
  if (auto lease = parse_lease(newer); lease && lease->version == newer_version) {
    known = std::make_shared<CachedName>(understand(key, std::move(*lease), known.get(), newer_at));
    read_at = newer_at.here;
  }
  newer.clear();
  newer_version = 0;
}

std::shared_ptr<const CachedName> NameCache::get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  it->second.used = ++uses_;
  it->second.read_newer(key);
  return it->second.known;
}

NameCache::Wakes NameCache::learn(const std::string& key, LeaseObject lease,
                                  const ClockReading& now,
                                  std::shared_ptr<const CachedName>& learnt) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.used = ++uses_;
  entry.told_at = now.here;
  entry.read_newer(key);
  if (entry.version() >= lease.version) {
    learnt = entry.known;
    return {};
  }
  Wakes wakes = new_wakes(lease.wake, entry.wake);
  entry.wake = lease.wake;
  entry.known =
      std::make_shared<CachedName>(understand(key, std::move(lease), entry.known.get(), now));
  entry.read_at = now.here;
  keys_[entry.known->lease.name] = key;
  learnt = entry.known;
  make_room();
  return wakes;
}

NameCache::Wakes NameCache::heard(const std::string& name, std::uint64_t version,
                                  const std::string& wake, std::string_view text,
                                  const ClockReading& now) {
  const std::lock_guard lock(mutex_);
  const auto key = keys_.find(name);
  if (key == keys_.end()) return {};
  Entry& entry = entries_[key->second];
  entry.told_at = now.here;
  if (entry.version() >= version) return {};
  Wakes wakes = new_wakes(wake, entry.wake);
  entry.wake = wake;
  entry.newer = text;
  entry.newer_version = version;
  entry.newer_at = now;
  if (now.here - entry.read_at >= kReadEvery) entry.read_newer(key->second);
  return wakes;
}

// Somebody broke the lock, or let it go: its holders may not know.
NameCache::Wakes NameCache::heard_of_end(const std::string& name, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  const auto key = keys_.find(name);
  if (key == keys_.end()) return {};
  Entry& entry = entries_[key->second];
  if (entry.version() > version) return {};
  Wakes wakes;
  for (const core::Holder& holder : entry.known->state.holders) {
    wakes.push_back({holder.channel, holder.grant});
  }
  erase(std::string(key->second));
  return wakes;
}

core::StoreTime NameCache::told_at(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  return it == entries_.end() ? core::StoreTime{0} : it->second.told_at;
}

void NameCache::wrote(const std::string& key, std::shared_ptr<const CachedName> known,
                      core::StoreTime now) {
  amend(key, std::move(known));
  const std::lock_guard lock(mutex_);
  entries_[key].told_at = now;
}

void NameCache::amend(const std::string& key, std::shared_ptr<const CachedName> known) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.used = ++uses_;
  if (entry.known != nullptr && entry.known->lease.version > known->lease.version) return;
  if (entry.newer_version <= known->lease.version) {
    entry.newer.clear();
    entry.newer_version = 0;
  }
  entry.wake = known->lease.wake;
  keys_[known->lease.name] = key;
  entry.known = std::move(known);
  make_room();
}

void NameCache::forget(const std::string& key, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  if (it != entries_.end() && it->second.version() <= version) erase(key);
}

CachedName NameCache::read(const std::string& key, LeaseObject lease, const ClockReading& now) {
  const auto before = get(key);
  if (before != nullptr && before->lease.version == lease.version) return *before;
  return understand(key, std::move(lease), before.get(), now);
}

void NameCache::erase(const std::string& key) {
  const auto it = entries_.find(key);
  if (it->second.known != nullptr) keys_.erase(it->second.known->lease.name);
  entries_.erase(it);
}

// Drops the half that was not used for the longest time.
void NameCache::make_room() {
  if (entries_.size() <= kMostNames) return;
  const std::uint64_t limit = uses_ - std::min<std::uint64_t>(uses_, kMostNames / 2);
  std::erase_if(entries_, [&](const auto& entry) {
    if (entry.second.used > limit) return false;
    if (entry.second.known != nullptr) keys_.erase(entry.second.known->lease.name);
    return true;
  });
}

}  // namespace baton::store::kubernetes
