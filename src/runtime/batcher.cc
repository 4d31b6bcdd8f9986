#include "runtime/batcher.h"

#include <algorithm>
#include <utility>

#include "runtime/ending.h"

namespace baton::runtime {
namespace {

Error not_sent() {
  return {.code = Code::unavailable,
          .message = "the store was busy with earlier requests for all of the time",
          .retryable = true};
}

Error not_answered() {
  return {.code = Code::unavailable,
          .message = "the store did not answer in time",
          .retryable = true,
          .in_doubt = true};
}

}  // namespace

Result<Reply> Batcher::submit(Request& request, Deadline deadline, Instant& sent) {
  if (direct_) return send_alone(request, deadline);
  Lane& lane = lanes_[only_ends_something(request) ? 1 : 0];
  Lock lock(mutex_);
  if (lane.gathering.empty() && in_flight_ < parallel_) {
    ++in_flight_;
    lock.unlock();
    auto reply = send_alone(request, deadline);
    lock.lock();
    give_slot(lane);
    return reply;
  }
  if (lane.gathering.empty() || lane.gathering.back()->places.size() == kMaxBatch) {
    lane.gathering.push_back(std::make_shared<Batch>());
  }
  const std::shared_ptr<Batch> batch = lane.gathering.back();
  const std::size_t place = batch->places.size();
  batch->places.push_back({.request = &request, .deadline = deadline});
  if (place == 0) return lead(lane, *batch, std::move(lock), sent);
  lock.unlock();
  return follow(lane, *batch, place, deadline, sent);
}

Result<Reply> Batcher::send_alone(const Request& request, Deadline deadline) {
  auto replies = store_.apply({&request, 1}, deadline);
  if (!replies) return replies.error();
  return std::move(replies->at(0));
}

Result<Reply> Batcher::lead(Lane& lane, Batch& batch, Lock lock, Instant& sent) {
  const Deadline deadline = batch.places[0].deadline;
  while (!batch.may_go && clock_.now() < deadline) clock_.wait(lock, batch.go, deadline);
  if (!batch.may_go) {
    batch.led = false;
    return leave(batch, 0, std::move(lock), sent);
  }
  const Instant now = clock_.now();
  if (has_time(batch, now)) return send(lane, batch, 0, std::move(lock), sent);
  const bool late = now >= deadline;
  if (late) batch.places[0].request = nullptr;
  if (!hand_over(lane, batch)) give_slot(lane);
  if (late) return not_sent();
  lock.unlock();
  return follow(lane, batch, 0, deadline, sent);
}

Result<Reply> Batcher::follow(Lane& lane, Batch& batch, std::size_t place, Deadline deadline,
                              Instant& sent) {
  std::uint32_t seen = 0;
  for (;;) {
    const auto state = batch.state.wait(seen, clock_, deadline);
    if (state == kAnswered) return reply_in(batch, place, sent);
    Lock lock(mutex_);
    const bool sends = batch.sender == place && place != 0;
    if (clock_.now() >= deadline) {
      if (sends) give_slot(lane);  // no other caller has time left either
      return leave(batch, place, std::move(lock), sent);
    }
    if (sends) return send(lane, batch, place, std::move(lock), sent);
    seen = state;
  }
}

// Moves the requests into the batch, side by side as the store takes them, so that callers may
// leave while the store reads them.
Result<Reply> Batcher::send(Lane& lane, Batch& batch, std::size_t place, Lock lock, Instant& sent) {
  take_out(lane, batch);
  {
    const std::lock_guard packing(batch.packing);
    batch.sealed = true;
    lock.unlock();
    batch.requests.reserve(batch.places.size());
    for (Place& one : batch.places) {
      if (one.request == nullptr) continue;
      one.index = batch.requests.size();
      batch.requests.push_back(std::move(*one.request));
    }
    batch.sent = clock_.now();
  }
  batch.replies.emplace(store_.apply(batch.requests, batch.places[place].deadline));
  batch.state.set(kAnswered);
  lock.lock();
  give_slot(lane);
  lock.unlock();
  return reply_in(batch, place, sent);
}

Result<Reply> Batcher::leave(Batch& batch, std::size_t place, Lock lock, Instant& sent) {
  if (!batch.sealed) {
    batch.places[place].request = nullptr;
    return not_sent();
  }
  lock.unlock();
  const std::lock_guard packing(batch.packing);
  const Place& mine = batch.places[place];
  *mine.request = batch.requests[mine.index];  // a copy: the store reads it
  sent = batch.sent;
  return not_answered();
}

// Each caller reads only its own place, so no lock is needed any more.
Result<Reply> Batcher::reply_in(Batch& batch, std::size_t place, Instant& sent) {
  const Place& mine = batch.places[place];
  *mine.request = std::move(batch.requests[mine.index]);
  sent = batch.sent;
  if (!*batch.replies) return batch.replies->error();
  return std::move((**batch.replies)[mine.index]);
}

// Whether the first caller may send: its deadline cuts no other caller short, except by the time
// that the other came later.
bool Batcher::has_time(const Batch& batch, Instant now) {
  const auto left = batch.places[0].deadline - now;
  if (left <= left.zero()) return false;
  return std::all_of(batch.places.begin(), batch.places.end(), [&](const Place& one) {
    return one.request == nullptr || one.deadline - now <= 2 * left;
  });
}

// Hands the batch to the caller with the most time left. False if no caller is left.
bool Batcher::hand_over(Lane& lane, Batch& batch) {
  take_out(lane, batch);
  for (std::size_t i = 1; i < batch.places.size(); ++i) {
    if (batch.places[i].request == nullptr) continue;
    if (batch.sender != 0 && batch.places[i].deadline <= batch.places[batch.sender].deadline) {
      continue;
    }
    batch.sender = i;
  }
  if (batch.sender != 0) batch.state.set(kHanded);
  return batch.sender != 0;
}

void Batcher::take_out(Lane& lane, const Batch& batch) {
  std::erase_if(lane.gathering, [&](const auto& other) { return other.get() == &batch; });
}

// A batch that may go stays in the queue, and still gathers, until its first caller takes it. It
// must not be signalled twice.
void Batcher::let_next_go(Lane& lane) {
  while (in_flight_ < parallel_) {
    const auto next = std::find_if(lane.gathering.begin(), lane.gathering.end(),
                                   [](const auto& batch) { return !batch->may_go; });
    if (next == lane.gathering.end()) return;
    const std::shared_ptr<Batch> batch = *next;
    batch->may_go = true;
    if (batch->led) {
      ++in_flight_;
      batch->go.notify_one();
      return;
    }
    if (hand_over(lane, *batch)) {
      ++in_flight_;
      return;
    }
  }
}

void Batcher::give_slot(Lane& lane) {
  --in_flight_;
  Lane& other = lanes_[&lane == &lanes_[0] ? 1 : 0];
  // The other lane first, so that neither lane starves the other. One lane may have all batches in
  // flight: while one batch waits for the disk, the store works on the next.
  let_next_go(other);
  let_next_go(lane);
}

}  // namespace baton::runtime
