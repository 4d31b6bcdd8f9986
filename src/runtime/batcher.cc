#include "runtime/batcher.h"

#include <algorithm>
#include <utility>

#include "runtime/ending.h"

namespace baton::runtime {
Result<Reply> Batcher::submit(Request& request, Deadline deadline, Instant& sent) {
  if (direct_) return send_alone(request, deadline);
  Lane& lane = lanes_[only_ends_something(request) ? 1 : 0];
  std::shared_ptr<Batch> batch;
  std::size_t place = 0;
  {
    std::unique_lock lock(mutex_);
    if (lane.gathering.empty() && in_flight_ < parallel_) {
      ++in_flight_;
      lock.unlock();
      auto reply = send_alone(request, deadline);
      landed(lane);
      return reply;
    }
    if (lane.gathering.empty() || lane.gathering.back()->requests.size() == kMaxBatch) {
      lane.gathering.push_back(std::make_shared<Batch>());
    }
    batch = lane.gathering.back();
    place = batch->requests.size();
    batch->requests.push_back(&request);
    batch->deadline = std::max(batch->deadline, deadline);
    if (place == 0) lead(lane, *batch, std::move(lock));
  }
  batch->answered.wait();
  sent = batch->sent;
  return reply_in(*batch, place);
}

Result<Reply> Batcher::send_alone(const Request& request, Deadline deadline) {
  auto replies = store_.apply({&request, 1}, deadline);
  if (!replies) return replies.error();
  return std::move(replies->at(0));
}

void Batcher::lead(Lane& lane, Batch& batch, std::unique_lock<std::mutex> lock) {
  batch.go.wait(lock, [&] { return batch.may_go; });
  std::erase_if(lane.gathering, [&](const auto& other) { return other.get() == &batch; });
  lock.unlock();
  batch.sent = clock_.now();
  batch.replies.emplace(send_all(batch));
  batch.answered.open();
  landed(lane);
}

// The store wants them side by side.
Result<std::vector<Reply>> Batcher::send_all(Batch& batch) {
  std::vector<Request> requests;
  requests.reserve(batch.requests.size());
  for (Request* request : batch.requests) requests.push_back(std::move(*request));
  auto replies = store_.apply(requests, batch.deadline);
  for (std::size_t i = 0; i < requests.size(); ++i) *batch.requests[i] = std::move(requests[i]);
  return replies;
}

// Every place is one caller's alone, so no lock is needed any more.
Result<Reply> Batcher::reply_in(Batch& batch, std::size_t place) {
  if (!*batch.replies) return batch.replies->error();
  return std::move((**batch.replies)[place]);
}

// A batch that may go stays where it is until its leader takes it away, and gathers on; it must not
// be told twice.
void Batcher::let_next_go(Lane& lane) {
  const auto next = std::find_if(lane.gathering.begin(), lane.gathering.end(),
                                 [](const auto& batch) { return !batch->may_go; });
  if (next == lane.gathering.end() || in_flight_ == parallel_) return;
  ++in_flight_;
  (*next)->may_go = true;
  (*next)->go.notify_one();
}

void Batcher::landed(Lane& lane) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  Lane& other = lanes_[&lane == &lanes_[0] ? 1 : 0];
  // First, so that neither lane keeps the other waiting. Either may have all that are in flight:
  // while one batch waits for the disk, the next is worked on.
  let_next_go(other);
  let_next_go(lane);
}

}  // namespace baton::runtime
