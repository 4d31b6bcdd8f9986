#include "store/postgres_advisory/session_table.h"

#include <algorithm>

namespace baton::store::postgres_advisory {
namespace {

constexpr std::size_t kMaxBusyNames = 1000;

core::Waiter waiter_of(const GrantEntry& entry) {
  core::Waiter waiter;
  static_cast<core::Claimant&>(waiter) = entry.holder;
  waiter.turn = entry.turn;
  waiter.stale = entry.stale;
  waiter.claim_within = entry.claim_within;
  return waiter;
}

}  // namespace

GrantEntry* SessionTable::find(const std::string& key, GrantId grant) const {
  const auto name = names_.find(key);
  if (name == names_.end()) return nullptr;
  for (const auto& entry : name->second.entries) {
    if (entry->lock.grant == grant) return entry.get();
  }
  return nullptr;
}

std::size_t SessionTable::waiting() const {
  std::size_t count = 0;
  for (const auto& [key, name] : names_) {
    count += static_cast<std::size_t>(std::count_if(
        name.entries.begin(), name.entries.end(), [](const auto& entry) { return !entry->holds; }));
  }
  return count;
}

void SessionTable::mark_busy(const std::string& key) {
  if (busy_.size() >= kMaxBusyNames) busy_.clear();
  busy_.insert(key);
}

// Nobody here has it or waits for it; others may.
bool SessionTable::may_be_free(const std::string& key) const {
  if (busy_.contains(key)) return false;
  const auto name = names_.find(key);
  return name == names_.end() || (name->second.entries.empty() && name->second.tombstones.empty());
}

GrantEntry& SessionTable::add(std::unique_ptr<GrantEntry> entry) {
  entry->turn = ++last_turn_;
  GrantEntry& added = *entry;
  Name& name = names_[added.lock.key];
  name.entries.push_back(std::move(entry));
  name.changed = true;
  return added;
}

std::unique_ptr<GrantEntry> SessionTable::remove(const GrantEntry& entry) {
  Name& name = names_.at(entry.lock.key);
  name.changed = true;
  auto& entries = name.entries;
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& other) { return other.get() == &entry; });
  std::unique_ptr<GrantEntry> removed = std::move(*place);
  entries.erase(place);
  return removed;
}

void SessionTable::tidy(const std::string& key) {
  const auto name = names_.find(key);
  if (name == names_.end()) return;
  if (name->second.entries.empty() && name->second.tombstones.empty()) names_.erase(name);
}

core::NameState SessionTable::name_state(const std::string& key, const ServerView& seen) const {
  core::NameState state;
  state.note = seen.note;
  std::vector<const GrantEntry*> waiting;
  if (const auto name = names_.find(key); name != names_.end()) {
    for (const auto& entry : name->second.entries) {
      if (entry->holds) {
        state.holders.push_back(entry->holder);
      } else {
        waiting.push_back(entry.get());
      }
    }
  }
  for (const auto& other : seen.holders) {
    if (find(key, other.holder.grant) == nullptr) state.holders.push_back(other.holder);
  }
  // In the server's order as far as it shows one; of ours, those that have the lock already come
  // first, and those that are only just queueing last.
  for (const GrantEntry* own : waiting) {
    if (own->has_lock) state.waiters.push_back(waiter_of(*own));
  }
  for (const core::Waiter& other : seen.waiters) {
    const GrantEntry* own = find(key, other.grant);
    if (own == nullptr) {
      state.waiters.push_back(other);
    } else if (!own->holds && !own->has_lock) {
      state.waiters.push_back(waiter_of(*own));
    }
  }
  for (const GrantEntry* own : waiting) {
    const bool shown = std::any_of(state.waiters.begin(), state.waiters.end(),
                                   [&](const auto& w) { return w.grant == own->lock.grant; });
    if (!shown) state.waiters.push_back(waiter_of(*own));
  }
  return state;
}

}  // namespace baton::store::postgres_advisory
