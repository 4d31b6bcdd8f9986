#include "runtime/courier.h"

#include <utility>

#include "runtime/ending.h"

namespace baton::runtime {
namespace {

constexpr Millis kLastWords{2000};

// Whose thread this is.
thread_local const Courier* own = nullptr;

Error closed() { return {.code = Code::cancelled, .message = "the client was closed"}; }

}  // namespace

void Courier::send(Request request, Then then) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      Lane& lane = lanes_[only_ends_something(request) ? 1 : 0];
      if (lane.empty() || lane.back().requests.size() == kMaxBatch) lane.emplace_back();
      lane.back().requests.push_back(std::move(request));
      lane.back().thens.push_back(std::move(then));
      if (idle_ > 0) {
        gathered_.notify_one();
      } else if (threads_.size() < most_) {
        threads_.emplace_back([this] { work(); });
      }
      return;
    }
  }
  Result<Reply> refused = closed();
  then(request, refused, clock_.now());
}

std::size_t Courier::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t size = 0;
  for (const Lane& lane : lanes_) {
    for (const Batch& batch : lane) size += batch.requests.size();
  }
  return size;
}

bool Courier::on_own_thread() const { return own == this; }

void Courier::work() {
  own = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    gathered_.wait(lock, [&] { return stopped_ || !lanes_[0].empty() || !lanes_[1].empty(); });
    --idle_;
    if (stopped_) return;
    Batch batch = next();
    lock.unlock();
    deliver(std::move(batch), apply_limit_ + Millis(500));
    lock.lock();
  }
}

// From the other lane than the last, if anything is there: neither keeps the other waiting.
Courier::Batch Courier::next() {
  if (!lanes_[1 - last_lane_].empty()) last_lane_ = 1 - last_lane_;
  Lane& lane = lanes_[last_lane_];
  Batch batch = std::move(lane.front());
  lane.pop_front();
  return batch;
}

void Courier::deliver(Batch batch, Millis patience) {
  const Instant sent = clock_.now();
  auto replies = store_.apply(batch.requests, sent + patience);
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    auto reply = replies ? Result<Reply>(std::move((*replies)[i])) : replies.error();
    batch.thens[i](batch.requests[i], reply, sent);
  }
}

void Courier::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    gathered_.notify_all();
  }
  threads_.clear();  // joins: nobody starts another now
  for (Batch& batch : lanes_[1]) deliver(std::move(batch), kLastWords);
  for (Batch& batch : lanes_[0]) {
    for (std::size_t i = 0; i < batch.requests.size(); ++i) {
      Result<Reply> refused = closed();
      batch.thens[i](batch.requests[i], refused, clock_.now());
    }
  }
}

}  // namespace baton::runtime
