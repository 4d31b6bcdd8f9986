#pragma once

#include <memory>
#include <vector>

#include "broker/embedded/subscription.h"

namespace baton::broker {

// A subscription of several queues: one consumer of each, which are asked in turn.
class SeveralQueues final : public Subscription {
 public:
  SeveralQueues(std::vector<std::unique_ptr<EmbeddedSubscription>> queues,
                std::shared_ptr<Watcher> watcher)
      : queues_(std::move(queues)), watcher_(std::move(watcher)) {}

  Result<std::vector<Delivery>> take(std::size_t most, Deadline by) override;
  Result<void> settle(std::span<const Settlement> settlements, Deadline by) override;

 private:
  Result<std::vector<Delivery>> take_some(std::size_t most, Deadline by);
  Error end(Error error);

  std::vector<std::unique_ptr<EmbeddedSubscription>> queues_;  // empty once it has ended
  std::shared_ptr<Watcher> watcher_;
  std::size_t next_ = 0;  // which queue is asked first
};

}  // namespace baton::broker
