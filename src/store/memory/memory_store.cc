#include "store/memory/memory_store.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/apply.h"
#include "store/common/subscribers.h"

namespace baton::store {
namespace {

using core::Effects;
using core::LockTable;
using core::StoreTime;

class MemoryStore final : public LockStore {
 public:
  explicit MemoryStore(std::function<StoreTime()> now) : now_(std::move(now)) {}

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline /*deadline*/) override {
    std::vector<Reply> replies;
    replies.reserve(batch.size());
    Effects effects;
    {
      const std::lock_guard lock(mutex_);
      const StoreTime now = now_();
      for (const Request& request : batch) {
        replies.push_back(core::apply(table_, request, now, effects));
        tidy(request);
      }
    }
    // Outside the lock: a sink may be taking its own locks.
    for (const auto& wake : effects.wakes) subscribers_->wake(wake.channel, {&wake.grant, 1});
    return replies;
  }

  Result<Page<LockInfo>> find(const Query& query, Deadline /*deadline*/) override {
    const std::lock_guard lock(mutex_);
    const StoreTime now = now_();
    std::map<std::string, const core::NameState*> ordered;
    for (const auto& [key, state] : table_.names) {
      if (key > query.after) ordered.emplace(key, &state);
    }
    Page<LockInfo> page;
    for (const auto& [key, state] : ordered) {
      LockInfo info = core::describe(key, *state, now, ~std::size_t{0});
      if (!core::matches(query, info)) continue;
      if (page.items.size() == std::max<std::size_t>(query.limit, 1)) {
        page.next = page.items.back().key;
        break;
      }
      if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
      page.items.push_back(std::move(info));
    }
    return page;
  }

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return subscribers_->add(channel, sink);
  }

  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can;
    can.needs_batching = false;
    can.batched_gets = true;
    can.clock = "this process (CLOCK_BOOTTIME)";
    return can;
  }

 private:
  // A name that remembers nothing costs nothing. Expired holders of names that nobody asks for
  // again are the exception; they are swept when the table has doubled since the last sweep.
  void tidy(const Request& request) {
    for (const Target& target : request.targets) {
      const auto it = table_.names.find(target.key);
      if (it == table_.names.end()) continue;
      it->second.dirty = false;
      if (it->second.empty()) table_.names.erase(it);
    }
    if (table_.names.size() < sweep_at_) return;
    const StoreTime now = now_();
    std::erase_if(table_.names,
                  [&](const auto& entry) { return core::forgettable(entry.second, now); });
    sweep_at_ = std::max<std::size_t>(1024, table_.names.size() * 2);
  }

  std::function<StoreTime()> now_;
  std::mutex mutex_;
  LockTable table_;
  std::size_t sweep_at_ = 1024;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
};

}  // namespace

std::unique_ptr<LockStore> make_memory_store_at(std::function<StoreTime()> now) {
  return std::make_unique<MemoryStore>(std::move(now));
}

}  // namespace baton::store

namespace baton {

std::unique_ptr<LockStore> make_memory_store() {
  return store::make_memory_store_at(
      [] { return std::chrono::floor<core::StoreTime>(BootClock::now().time_since_epoch()); });
}

}  // namespace baton
