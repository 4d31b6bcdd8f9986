#include "apps/gateway/tally.h"

namespace baton::gateway {

Tally::Count Tally::add(const std::string& name, const Write& write) {
  std::unique_lock lock(mutex_);
  Name& entry = names_[name];
  if (!entry.next) entry.next = std::make_shared<Round>();
  const std::shared_ptr<Round> round = entry.next;
  const std::int64_t mine = ++round->size;
  // The entry is there for as long as a round of it has not ended.
  changed_.wait(lock, [&] { return round->ended || !entry.writing; });
  if (!round->ended) {
    entry.writing = true;
    entry.next.reset();
    lock.unlock();
    Count outcome = write(round->size);
    lock.lock();
    round->outcome = std::move(outcome);
    round->ended = true;
    entry.writing = false;
    if (!entry.next) names_.erase(name);
    changed_.notify_all();
  }
  if (!round->outcome || !*round->outcome) return round->outcome;
  return std::optional<std::int64_t>(**round->outcome - (round->size - mine));
}

std::int64_t Tally::gathered(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() || !found->second.next ? 0 : found->second.next->size;
}

}  // namespace baton::gateway
