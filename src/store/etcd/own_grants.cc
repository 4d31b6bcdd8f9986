#include "store/etcd/own_grants.h"

#include <algorithm>

namespace baton::store::etcd {

core::StoreTime OwnGrants::Times::end() const {
  const core::StoreTime none{0};
  return std::max({holds_until.value_or(none), waits_until.value_or(none),
                   converts_until.value_or(none), entombed_until.value_or(none)});
}

std::optional<OwnGrants::Times> OwnGrants::find(const std::string& key, GrantId grant) const {
  const std::lock_guard lock(mutex_);
  const auto it = grants_.find({key, grant});
  return it == grants_.end() ? std::nullopt : std::optional(it->second);
}

void OwnGrants::set(const std::string& key, GrantId grant, const Times& times) {
  const std::lock_guard lock(mutex_);
  const bool ends =
      times.holds_until || times.waits_until || times.converts_until || times.entombed_until;
  if (!ends) {
    grants_.erase({key, grant});
    return;
  }
  const auto [it, is_new] = grants_.try_emplace({key, grant}, times);
  if (is_new || times.end() < it->second.end()) due_.emplace(times.end(), key, grant);
  it->second = times;
}

std::vector<OwnGrants::Ended> OwnGrants::take_ended(core::StoreTime now, std::size_t most) {
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
    if (it->second.end() > now) {
      at = it->second.end();
      due_.push(std::move(due));
      continue;
    }
    ended.push_back({key, grant, it->second});
  }
  for (Due& due : later) due_.push(std::move(due));
  return ended;
}

void OwnGrants::forget(const Ended& ended) {
  const std::lock_guard lock(mutex_);
  const auto it = grants_.find({ended.key, ended.grant});
  if (it == grants_.end()) return;
  if (it->second == ended.times) {
    grants_.erase(it);
  } else {
    due_.emplace(it->second.end(), ended.key, ended.grant);
  }
}

void OwnGrants::ask_again(const Ended& ended, core::StoreTime at) {
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
