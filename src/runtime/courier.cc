#include "runtime/courier.h"

#include <iterator>
#include <type_traits>
#include <utility>

#include "runtime/ending.h"
#include "runtime/pace.h"

namespace baton::runtime {
namespace {

constexpr Millis kMoment{1};
constexpr std::size_t kWorthSharing = 8;

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
      if (handing_out_ == 0 || !std::exchange(called_, true)) call_another();
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

bool Courier::nothing_gathered() const { return lanes_[0].empty() && lanes_[1].empty(); }

void Courier::call_another() {
  if (idle_ > 0) {
    gathered_.notify_one();
  } else if (threads_.size() < most_) {
    threads_.emplace_back([this] { work(); });
  }
}

void Courier::work() {
  own = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    do {
      gathered_.wait(lock, [&] { return stopped_ || !nothing_gathered(); });
      // More is likely to come at once, and then whoever hands out takes it or calls.
      gathered_.wait_for(lock, kMoment, [&] { return stopped_ || handing_out_ == 0; });
    } while (!stopped_ && nothing_gathered());
    --idle_;
    if (stopped_) return;
    Batch batch = next();
    if (!nothing_gathered()) call_another();
    lock.unlock();
    const Instant sent = clock_.now();
    auto replies = store_.apply(batch.requests, sent + apply_limit_ + Millis(500));
    lock.lock();
    ++handing_out_;
    lock.unlock();
    hand_out(batch, replies, sent);
    lock.lock();
    --handing_out_;
  }
}

// From the other lane than the last, if anything is there: neither keeps the other waiting. If much
// has gathered and others have nothing to do, they get their share of it.
Courier::Batch Courier::next() {
  if (!lanes_[1 - last_lane_].empty()) last_lane_ = 1 - last_lane_;
  Lane& lane = lanes_[last_lane_];
  called_ = false;
  const std::size_t share = lane.front().requests.size() / (idle_ + 1);
  if (lane.size() > 1 || idle_ == 0 || !lanes_[1 - last_lane_].empty() || share < kWorthSharing) {
    Batch batch = std::move(lane.front());
    lane.pop_front();
    return batch;
  }
  return lane.front().split_off(share);
}

Courier::Batch Courier::Batch::split_off(std::size_t count) {
  const auto first = [count](auto& all) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
    std::remove_reference_t<decltype(all)> some(std::make_move_iterator(all.begin()),
                                                std::make_move_iterator(end));
    all.erase(all.begin(), end);
    return some;
  };
  return {first(requests), first(thens)};
}

void Courier::hand_out(Batch& batch, Result<std::vector<Reply>>& replies, Instant sent) {
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    auto reply = replies ? Result<Reply>(std::move((*replies)[i])) : replies.error();
    // Goes here, where nothing is locked: what it holds may send something when it goes.
    const Then then = std::move(batch.thens[i]);
    then(batch.requests[i], reply, sent);
  }
}

void Courier::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    gathered_.notify_all();
  }
  threads_.clear();  // joins: nobody starts another now
  for (Batch& batch : lanes_[1]) {
    const Instant sent = clock_.now();
    auto replies = store_.apply(batch.requests, sent + kLastWords);
    hand_out(batch, replies, sent);
  }
  for (Batch& batch : lanes_[0]) {
    for (std::size_t i = 0; i < batch.requests.size(); ++i) {
      Result<Reply> refused = closed();
      batch.thens[i](batch.requests[i], refused, clock_.now());
    }
  }
}

}  // namespace baton::runtime
