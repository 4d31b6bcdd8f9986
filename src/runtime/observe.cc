#include "baton/observe.h"

#include <map>
#include <utility>

namespace baton {
namespace {

class ObservedStore final : public LockStore {
 public:
  ObservedStore(std::shared_ptr<LockStore> store, StoreObserver observer)
      : store_(std::move(store)), observer_(std::move(observer)) {}

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    const Instant start = BootClock::now();
    auto replies = store_->apply(batch, deadline);
    StoreCall call{.requests = batch, .took = BootClock::now() - start};
    if (replies) {
      call.replies = *replies;
    } else {
      call.error = &replies.error();
    }
    observer_(call);
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return store_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return store_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return store_->capabilities(); }

 private:
  const std::shared_ptr<LockStore> store_;
  const StoreObserver observer_;
};

}  // namespace

std::shared_ptr<LockStore> observed(std::shared_ptr<LockStore> store, StoreObserver observer) {
  return std::make_shared<ObservedStore>(std::move(store), std::move(observer));
}

void StoreCounters::count(const StoreCall& call) {
  ++calls_;
  nanoseconds_ += call.took.count();
  if (call.error != nullptr) ++failed_;
  for (std::size_t i = 0; i < call.replies.size(); ++i) {
    ++counts_[index(call.requests[i].verb, call.replies[i].outcome)];
  }
}

std::string describe(const StoreCall& call) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(call.took).count();
  std::string line =
      std::to_string(call.requests.size()) + " in " + std::to_string(micros) + " us:";
  if (call.error != nullptr) {
    return line + " " + std::string(to_string(call.error->code)) +
           (call.error->in_doubt ? ", in doubt: " : ": ") + call.error->message;
  }
  if (call.requests.size() == 1) {
    const Request& request = call.requests[0];
    line += " " + std::string(to_string(request.verb));
    for (const Target& target : request.targets) {
      line += " " + target.key + "=" + std::string(short_name(target.mode));
    }
    return line + " " + std::string(to_string(call.replies[0].outcome));
  }
  std::map<std::pair<std::string_view, std::string_view>, int> counts;
  for (std::size_t i = 0; i < call.replies.size(); ++i) {
    ++counts[{to_string(call.requests[i].verb), to_string(call.replies[i].outcome)}];
  }
  for (const auto& [what, count] : counts) {
    line += " " + std::string(what.first) + " " + std::string(what.second) + " x" +
            std::to_string(count);
  }
  return line;
}

}  // namespace baton
