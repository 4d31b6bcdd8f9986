#include "runtime/async_batcher.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <type_traits>
#include <utility>

#include "runtime/ending.h"
#include "runtime/timing.h"

namespace baton::runtime {
namespace {

constexpr Millis kMoment{1};
constexpr std::size_t kWorthSharing = 8;

// The AsyncBatcher that this thread belongs to. The variable's address identifies the thread.
thread_local const AsyncBatcher* own = nullptr;
// The one in whose gather() this thread is.
thread_local const AsyncBatcher* gathers_for = nullptr;

Error closed() { return {.code = Code::cancelled, .message = "the client was closed"}; }

Error no_thread() {
  return {.code = Code::unavailable,
          .message = "no thread could be started to ask the store",
          .retryable = true};
}

}  // namespace

void AsyncBatcher::send(Request request, Then then) {
  Result<Reply> refused = closed();
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      Batch& batch = place_for(request);
      batch.requests.push_back(std::move(request));
      batch.thens.push_back(std::move(then));
      const bool goes_later = gathers_for == this && !threads_.empty();
      if (batch.requests.size() == 1 && !goes_later) call_another();
      if (!threads_.empty()) return;
      request = std::move(batch.requests.back());
      then = std::move(batch.thens.back());
      batches_.pop_back();
      refused = no_thread();
    }
  }
  then(request, refused, clock_.now());
}

void AsyncBatcher::gather(const std::function<void()>& ask) {
  const auto before = std::exchange(gathers_for, this);
  ask();
  gathers_for = before;
  const std::lock_guard lock(mutex_);
  if (stopped_ || gatherer() != nullptr) return;  // a callback goes on gathering
  close(&gathers_for);
  if (ready() > 0) call_another();
}

AsyncBatcher::Thread AsyncBatcher::gatherer() const {
  if (own == this) return &own;
  return gathers_for == this ? &gathers_for : nullptr;
}

AsyncBatcher::Batch& AsyncBatcher::place_for(const Request& request) {
  const bool ends = only_ends_something(request);
  const Thread by = gatherer();
  const auto found = std::find_if(batches_.rbegin(), batches_.rend(), [&](const Batch& batch) {
    return batch.ends == ends && batch.gatherer == by && batch.requests.size() < kMaxBatch;
  });
  if (found != batches_.rend()) return *found;
  return batches_.emplace_back(Batch{.ends = ends, .gatherer = by});
}

std::size_t AsyncBatcher::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t size = 0;
  for (const Batch& batch : batches_) size += batch.requests.size();
  return size;
}

bool AsyncBatcher::on_own_thread() const { return own == this; }

void AsyncBatcher::call_another() {
  if (idle_ > 0) {
    gathered_.notify_one();
  } else if (threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // those that there are do it
    }
  }
}

std::size_t AsyncBatcher::ready() const {
  return static_cast<std::size_t>(std::count_if(
      batches_.begin(), batches_.end(), [](const Batch& one) { return one.gatherer == nullptr; }));
}

void AsyncBatcher::work() {
  own = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    gathered_.wait(lock, [&] { return stopped_ || !batches_.empty(); });
    // Wait a moment for a larger batch: a thread that runs callbacks is likely to add more and then
    // sends the batch itself. A small batch sent now would keep the batches unequal in size.
    gathered_.wait_for(lock, kMoment,
                       [&] { return stopped_ || batches_.empty() || is_worth_it(); });
    --idle_;
    if (stopped_) return;
    if (batches_.empty()) continue;
    Batch batch = next();
    if (ready() > 0) call_another();
    lock.unlock();
    const Instant sent = clock_.now();
    auto replies = store_.apply(batch.requests, sent + apply_limit_ + Millis(500));
    lock.lock();
    handing_out_ += batch.requests.size();
    lock.unlock();
    hand_out(batch, replies, sent);
    lock.lock();
    handing_out_ -= batch.requests.size();
    close(&own);
  }
}

// The oldest complete batch, or else the oldest of all. If it is the only one, is large, and other
// threads are idle, only this thread's share is taken and the rest is left for them.
AsyncBatcher::Batch AsyncBatcher::next() {
  const auto oldest = std::find_if(batches_.begin(), batches_.end(),
                                   [](const Batch& one) { return one.gatherer == nullptr; });
  const auto chosen = oldest == batches_.end() ? batches_.begin() : oldest;
  const std::size_t share = chosen->requests.size() / (idle_ + 1);
  if (idle_ == 0 || ready() > 1 || share < kWorthSharing) {
    Batch batch = std::move(*chosen);
    batches_.erase(chosen);
    return batch;
  }
  return chosen->split_off(share);
}

bool AsyncBatcher::is_worth_it() const {
  return std::any_of(batches_.begin(), batches_.end(), [&](const Batch& one) {
    return one.gatherer == nullptr && 2 * one.requests.size() >= handing_out_;
  });
}

// Completes the batches of this thread, and merges each into a complete batch of the same kind.
void AsyncBatcher::close(Thread gatherer) {
  for (auto batch = batches_.begin(); batch != batches_.end();) {
    if (batch->gatherer != gatherer) {
      ++batch;
      continue;
    }
    batch->gatherer = nullptr;
    const auto other = std::find_if(batches_.begin(), batches_.end(), [&](const Batch& one) {
      return &one != &*batch && one.gatherer == nullptr && one.ends == batch->ends &&
             one.requests.size() + batch->requests.size() <= kMaxBatch;
    });
    if (other == batches_.end()) {
      ++batch;
      continue;
    }
    std::move(batch->requests.begin(), batch->requests.end(), std::back_inserter(other->requests));
    std::move(batch->thens.begin(), batch->thens.end(), std::back_inserter(other->thens));
    batch = batches_.erase(batch);
  }
}

AsyncBatcher::Batch AsyncBatcher::Batch::split_off(std::size_t count) {
  const auto first = [count](auto& all) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
    std::remove_reference_t<decltype(all)> some(std::make_move_iterator(all.begin()),
                                                std::make_move_iterator(end));
    all.erase(all.begin(), end);
    return some;
  };
  return {.ends = ends, .requests = first(requests), .thens = first(thens)};
}

void AsyncBatcher::hand_out(Batch& batch, Result<std::vector<Reply>>& replies, Instant sent) {
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    auto reply = replies ? Result<Reply>(std::move((*replies)[i])) : replies.error();
    // Destroyed here, without the mutex: what the callback owns may send a request when destroyed.
    const Then then = std::move(batch.thens[i]);
    then(batch.requests[i], reply, sent);
  }
}

void AsyncBatcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    gathered_.notify_all();
  }
  threads_.clear();  // joins; no thread is started after stopped_ is set
  std::stable_partition(batches_.begin(), batches_.end(),
                        [](const Batch& one) { return one.ends; });
  for (Batch& batch : batches_) {
    const Instant sent = clock_.now();
    Result<std::vector<Reply>> replies = closed();
    if (batch.ends) replies = store_.apply(batch.requests, sent + kCloseTimeout);
    hand_out(batch, replies, sent);
  }
}

}  // namespace baton::runtime
