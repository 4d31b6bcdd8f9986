#include "events/turns.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "events/lab.h"
#include "harness/machine.h"

namespace baton::bench {
namespace {

constexpr std::chrono::seconds kPatience{120};

class PublisherInTurns final : public Publisher {
 public:
  PublisherInTurns(std::unique_ptr<Publisher> inner, std::shared_ptr<Turns> turns)
      : inner_(std::move(inner)), turns_(std::move(turns)) {}

  Result<std::uint64_t> publish(std::span<const Message> messages, Deadline by) override {
    if (turns_->is_over()) {
      while (unconfirmed_ > 0) collect(soon());
      turns_->finish(std::exchange(sent_, 0));
      by = soon();
    }
    auto first = inner_->publish(messages, by);
    if (first) {
      unconfirmed_ += messages.size();
      sent_ += messages.size();
    }
    return first;
  }

  Result<std::vector<Confirm>> confirms(Deadline by) override {
    if (collected_.empty()) collect(by);
    return std::exchange(collected_, {});
  }

  [[nodiscard]] PublisherState state() const override { return inner_->state(); }

 private:
  void collect(Deadline by) {
    auto confirms = inner_->confirms(by).value();
    for (Confirm& confirm : confirms) {
      if (confirm.outcome != PublishOutcome::taken) throw std::runtime_error(confirm.why);
      collected_.push_back(std::move(confirm));
      --unconfirmed_;
    }
  }

  const std::unique_ptr<Publisher> inner_;
  const std::shared_ptr<Turns> turns_;
  std::vector<Confirm> collected_;
  std::size_t unconfirmed_ = 0;
  std::uint64_t sent_ = 0;
};

// A consumer takes again when it has settled all that it took.
class SubscriptionInTurns final : public Subscription {
 public:
  SubscriptionInTurns(std::unique_ptr<Subscription> inner, std::shared_ptr<Turns> turns)
      : inner_(std::move(inner)), turns_(std::move(turns)) {}

  Result<std::vector<Delivery>> take(std::size_t most, Deadline by) override {
    if (turns_->is_over()) {
      turns_->finish(std::exchange(settled_, 0));
      by = BootClock::now() + Millis(200);
    }
    return inner_->take(most, by);
  }
  Result<void> settle(std::span<const Settlement> settlements, Deadline by) override {
    settled_ += settlements.size();
    return inner_->settle(settlements, by);
  }

 private:
  const std::unique_ptr<Subscription> inner_;
  const std::shared_ptr<Turns> turns_;
  std::uint64_t settled_ = 0;
};

class BrokerInTurns final : public Broker {
 public:
  BrokerInTurns(std::shared_ptr<Broker> inner, std::shared_ptr<Turns> turns, std::string queue)
      : inner_(std::move(inner)), turns_(std::move(turns)), queue_(std::move(queue)) {}

  Result<void> declare(const Topology& topology, Deadline by) override {
    return inner_->declare(topology, by);
  }
  Result<std::vector<BrokerFinding>> check(const Topology& topology, Deadline by) override {
    return inner_->check(topology, by);
  }
  Result<std::vector<QueueInfo>> queues(const Topology& topology, Deadline by) override {
    return inner_->queues(topology, by);
  }
  Result<std::unique_ptr<Publisher>> publisher() override {
    auto publisher = inner_->publisher();
    if (!publisher) return publisher;
    return std::unique_ptr<Publisher>(
        std::make_unique<PublisherInTurns>(std::move(*publisher), turns_));
  }
  using Broker::subscribe;
  Result<std::unique_ptr<Subscription>> subscribe(std::vector<std::string> queues,
                                                  const SubscribeOptions& options,
                                                  Deadline by) override {
    const bool waits = queues == std::vector{queue_};
    auto subscription = inner_->subscribe(std::move(queues), options, by);
    if (!subscription || !waits) return subscription;
    return std::unique_ptr<Subscription>(
        std::make_unique<SubscriptionInTurns>(std::move(*subscription), turns_));
  }
  [[nodiscard]] std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<Broker> inner_;
  const std::shared_ptr<Turns> turns_;
  const std::string queue_;
};

}  // namespace

void Turns::wait_until_ready(std::unique_lock<std::mutex>& lock) {
  if (!changed_.wait_for(lock, kPatience, [&] { return ready_; })) {
    throw std::runtime_error("a turn does not end: there was nothing left to do, or it failed");
  }
}

void Turns::wait_until_ready() {
  std::unique_lock lock(mutex_);
  wait_until_ready(lock);
}

Slice Turns::run(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  wait_until_ready(lock);
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  ready_ = false;
  until_ = start + time;
  changed_.notify_all();
  wait_until_ready(lock);
  const std::chrono::duration<double> wall = finished_ - start;
  return {.steps = steps_, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
}

void Turns::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

bool Turns::is_over() const {
  const std::lock_guard lock(mutex_);
  return !ended_ && (!until_ || std::chrono::steady_clock::now() >= *until_);
}

void Turns::finish(std::uint64_t steps) {
  std::unique_lock lock(mutex_);
  steps_ = steps;
  finished_ = std::chrono::steady_clock::now();
  ready_ = true;
  until_.reset();
  changed_.notify_all();
  changed_.wait(lock, [&] { return until_ || ended_; });
}

std::shared_ptr<Broker> in_turns(std::shared_ptr<Broker> broker, std::shared_ptr<Turns> turns,
                                 std::string queue) {
  return std::make_shared<BrokerInTurns>(std::move(broker), std::move(turns), std::move(queue));
}

}  // namespace baton::bench
