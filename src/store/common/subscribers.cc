#include "store/common/subscribers.h"

namespace baton::store {

class Subscribers::Subscription final : public Watch {
 public:
  Subscription(std::shared_ptr<Subscribers> owner,
               std::multimap<std::string, WakeSink*>::iterator place)
      : owner_(std::move(owner)), place_(place) {}
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription() override {
    const std::lock_guard lock(owner_->mutex_);
    owner_->sinks_.erase(place_);
  }

 private:
  std::shared_ptr<Subscribers> owner_;
  std::multimap<std::string, WakeSink*>::iterator place_;
};

std::unique_ptr<Watch> Subscribers::add(const std::string& channel, WakeSink& sink) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<Subscription>(shared_from_this(), sinks_.emplace(channel, &sink));
}

void Subscribers::wake(const std::string& channel, std::span<const GrantId> grants) {
  const std::lock_guard lock(mutex_);
  const auto [from, to] = sinks_.equal_range(channel);
  for (auto it = from; it != to; ++it) it->second->wake(grants);
}

bool Subscribers::has(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  return sinks_.contains(channel);
}

void Subscribers::wake_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [channel, sink] : sinks_) sink->wake({});
}

}  // namespace baton::store
