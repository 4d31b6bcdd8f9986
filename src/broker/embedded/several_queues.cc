#include "broker/embedded/several_queues.h"

#include <algorithm>

namespace baton::broker {
namespace {

Error ended() {
  return {.code = Code::lost, .message = "this subscription has ended: subscribe again"};
}

}  // namespace

Error SeveralQueues::end(Error error) {
  queues_.clear();
  return error;
}

Result<std::vector<Delivery>> SeveralQueues::take(std::size_t most, Deadline by) {
  while (true) {
    const std::uint64_t seen = watcher_->seen();
    auto found = take_some(most, by);
    if (!found || !found->empty()) return found;
    const Instant now = BootClock::now();
    if (now >= by) return found;
    watcher_->wait(seen, std::min<Deadline>(by, now + Watcher::kLookEvery));
  }
}

// The tag of a delivery of queue i of n is n * its tag there + i.
Result<std::vector<Delivery>> SeveralQueues::take_some(std::size_t most, Deadline by) {
  if (queues_.empty()) return ended();
  const std::size_t count = queues_.size();
  std::vector<Delivery> all;
  for (std::size_t i = 0; i < count && all.size() < most; ++i) {
    const std::size_t queue = (next_ + i) % count;
    auto found = queues_[queue]->take_some(most - all.size(), by);
    if (!found) return end(std::move(found.error()));
    for (Delivery& delivery : *found) {
      delivery.tag = delivery.tag * count + queue;
      all.push_back(std::move(delivery));
    }
  }
  next_ = (next_ + 1) % count;
  return all;
}

Result<void> SeveralQueues::settle(std::span<const Settlement> settlements, Deadline by) {
  if (queues_.empty()) return ended();
  const std::size_t count = queues_.size();
  std::vector<std::vector<Settlement>> of(count);
  for (const auto& [tag, how] : settlements) of[tag % count].push_back({tag / count, how});
  for (std::size_t queue = 0; queue < count; ++queue) {
    if (auto done = queues_[queue]->settle(of[queue], by); !done) {
      return end(std::move(done.error()));
    }
  }
  return {};
}

}  // namespace baton::broker
