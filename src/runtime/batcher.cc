#include "runtime/batcher.h"

#include <algorithm>

namespace baton::runtime {
namespace {

Result<Reply> only_reply(Result<std::vector<Reply>> replies) {
  if (!replies) return replies.error();
  return std::move(replies->at(0));
}

}  // namespace

Result<Reply> Batcher::submit(const Request& request, Deadline deadline) {
  if (direct_) return only_reply(store_.apply({&request, 1}, deadline));
  const auto call = std::make_shared<Call>();
  call->request = &request;
  call->deadline = deadline;
  bool lead_now = false;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty() && in_flight_ < parallel_) {
      ++in_flight_;
      lead_now = true;
    } else {
      waiting_.push_back(call);
    }
  }
  if (lead_now) {
    Result<Reply> reply = only_reply(store_.apply({&request, 1}, deadline));
    pass_the_lead();
    return reply;
  }
  call->state.wait(gathering);
  if (call->state.load() == leading) lead();
  return std::move(*call->result);
}

// The caller is at the front of the queue and has been told to send it.
void Batcher::lead() {
  const Batch batch = take_batch();
  send(batch);
  pass_the_lead();
}

Batcher::Batch Batcher::take_batch() {
  const std::lock_guard lock(mutex_);
  const auto size = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMaxBatch));
  Batch batch(waiting_.begin(), waiting_.begin() + size);
  waiting_.erase(waiting_.begin(), waiting_.begin() + size);
  return batch;
}

void Batcher::send(const Batch& batch) {
  std::vector<Request> requests;
  requests.reserve(batch.size());
  Deadline deadline = batch.front()->deadline;
  for (const auto& call : batch) {
    requests.push_back(*call->request);
    deadline = std::max(deadline, call->deadline);
  }
  Result<std::vector<Reply>> replies = store_.apply(requests, deadline);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Call& call = *batch[i];
    if (replies) {
      call.result.emplace(std::move((*replies)[i]));
    } else {
      call.result.emplace(replies.error());
    }
    // The leader itself is not waiting.
    if (i == 0) continue;
    call.state.store(done);
    call.state.notify_one();
  }
}

void Batcher::pass_the_lead() {
  const std::lock_guard lock(mutex_);
  // Whoever is told to lead stays in the queue until it takes its batch, so that it is first in it;
  // one that was told already must not be told again.
  if (!waiting_.empty() && waiting_.front()->state.load() == gathering) {
    waiting_.front()->state.store(leading);
    waiting_.front()->state.notify_one();
    return;
  }
  --in_flight_;
}

}  // namespace baton::runtime
