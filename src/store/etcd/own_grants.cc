#include "store/etcd/own_grants.h"

#include <algorithm>
#include <array>

namespace baton::store::etcd {
namespace {

using core::StoreTime;
using Times = OwnGrants::Times;

constexpr std::array<std::optional<StoreTime> Times::*, 4> kAll{
    &Times::holds_until, &Times::waits_until, &Times::converts_until, &Times::entombed_until};

}  // namespace

bool Times::any() const { return holds_until || waits_until || converts_until || entombed_until; }

StoreTime Times::end() const {
  const StoreTime none{0};
  return std::max({holds_until.value_or(none), waits_until.value_or(none),
                   converts_until.value_or(none), entombed_until.value_or(none)});
}

std::optional<OwnGrants::Times> OwnGrants::find(const std::string& key, GrantId grant) const {
  const std::lock_guard lock(mutex_);
  const auto it = grants_.find({key, grant});
  return it == grants_.end() ? std::nullopt : std::optional(it->second.times);
}

void OwnGrants::change(const std::string& key, GrantId grant, const Change& change) {
  const std::lock_guard lock(mutex_);
  const auto [it, is_new] = grants_.try_emplace({key, grant});
  Known& known = it->second;
  const StoreTime old_end = known.times.end();
  const bool outdated = known.as_of > change.as_of;
  for (const auto time : kAll) {
    auto& mine = known.times.*time;
    const auto& before = change.before.*time;
    const auto& after = change.after.*time;
    if (outdated) {
      // A renewal, unless a write that came after it has shortened the time.
      const bool counts = !change.written || (mine && before && *mine >= *before);
      if (mine && after && counts) mine = std::max(*mine, *after);
    } else if (after) {
      if (!mine || !before || *after < *before) {  // new, or shortened on purpose
        mine = after;
      } else if (*after > *before) {  // another renewal may have gone further meanwhile
        mine = std::max(*mine, *after);
      }
    } else if (change.written) {
      mine.reset();
    }
  }
  known.as_of = std::max(known.as_of, change.as_of);
  if (!known.times.any()) {
    grants_.erase(it);
  } else if (is_new || known.times.end() < old_end) {
    due_.emplace(known.times.end(), key, grant);
  }
}

std::vector<OwnGrants::Ended> OwnGrants::take_ended(StoreTime now, std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::vector<Ended> ended;
  std::vector<Due> later;
  while (!due_.empty() && std::get<0>(due_.top()) <= now && ended.size() < most) {
    Due due = due_.top();
    due_.pop();
    auto& [at, key, grant] = due;
    const auto it = grants_.find({key, grant});
    if (it == grants_.end()) continue;
    if (in_use_.contains(key)) {
      later.push_back(std::move(due));
      continue;
    }
    if (it->second.times.end() > now) {
      at = it->second.times.end();
      due_.push(std::move(due));
      continue;
    }
    ended.push_back({key, grant, it->second.times});
  }
  for (Due& due : later) due_.push(std::move(due));
  return ended;
}

void OwnGrants::forget(const Ended& ended) {
  const std::lock_guard lock(mutex_);
  const auto it = grants_.find({ended.key, ended.grant});
  if (it == grants_.end()) return;
  if (it->second.times == ended.times) {
    grants_.erase(it);
  } else {
    due_.emplace(it->second.times.end(), ended.key, ended.grant);
  }
}

void OwnGrants::ask_again(const Ended& ended, StoreTime at) {
  const std::lock_guard lock(mutex_);
  due_.emplace(at, ended.key, ended.grant);
}

bool OwnGrants::empty() const {
  const std::lock_guard lock(mutex_);
  return grants_.empty();
}

OwnGrants::Use::Use(OwnGrants& grants, const std::vector<std::string>& keys)
    : grants_(grants), keys_(keys) {
  const std::lock_guard lock(grants_.mutex_);
  for (const std::string& key : keys_) ++grants_.in_use_[key];
}

OwnGrants::Use::~Use() {
  const std::lock_guard lock(grants_.mutex_);
  for (const std::string& key : keys_) {
    const auto it = grants_.in_use_.find(key);
    if (--it->second == 0) grants_.in_use_.erase(it);
  }
}

}  // namespace baton::store::etcd
