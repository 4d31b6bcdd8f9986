#include "partitions/worker.h"

#include <exception>
#include <utility>

namespace baton::partitions {
namespace {

thread_local const void* working_for = nullptr;

}  // namespace

Worker::Worker(std::string set, std::size_t number, Lease lease, Clock& clock)
    : set_(std::move(set)),
      number_(number),
      lease_(std::move(lease)),
      clock_(clock),
      began_(clock.now()) {}

void Worker::start(const Partitions::Work& work, const void* member, bool can_transfer,
                   const std::function<void(std::string)>& then) {
  try {
    thread_ = std::thread([self = shared_from_this(), work, member, can_transfer, then] {
      working_for = member;
      std::string threw = self->perform(work);
      self->release(can_transfer);
      then(std::move(threw));
    });
  } catch (const std::exception& problem) {  // too many threads, or no memory for another
    end(Ending::failed);
    lease_.release_async();
    then(std::string("no thread could be started for it: ") + problem.what());
  }
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

std::string Worker::perform(const Partitions::Work& work) {
  std::string threw;
  const std::stop_callback on_loss(lease_.lost(), [this] { end(Ending::lost); });
  if (ending()) return threw;  // stopped meanwhile, or paused for so long that it is lost already
  try {
    Partition partition(shared_from_this());
    work(partition, stop_.get_token());
  } catch (const std::exception& problem) {
    threw = problem.what();
    if (threw.empty()) threw = "an exception without a message";
  } catch (...) {
    threw = "an exception that is no std::exception";
  }
  end(threw.empty() ? Ending::returned : Ending::failed);
  return threw;
}

// A lease that was lost is released too: that acknowledges a revocation, so that the next owner
// need not wait for the TTL. What fails here is repeated in the background, and ends by its TTL.
void Worker::release(bool can_transfer) {
  std::string to;
  {
    const std::lock_guard lock(mutex_);
    to = to_;
  }
  if (!to.empty() && can_transfer && lease_.release({.to = to})) return;
  (void)lease_.release();
}

void Worker::end(Ending ending, std::string to) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = ending;
    ended_at_ = clock_.now();
    to_ = std::move(to);
  }
  // Outside the lock: it runs the callbacks of the work.
  stop_.request_stop();
}

std::optional<Ending> Worker::ending() const {
  const std::lock_guard lock(mutex_);
  return ending_;
}

Instant Worker::ended_at() const {
  const std::lock_guard lock(mutex_);
  return ended_at_;
}

std::string Worker::why() const {
  const std::lock_guard lock(mutex_);
  if (!ending_) return {};
  switch (*ending_) {
    case Ending::returned: return "the work has returned";
    case Ending::failed: return "the work has failed";
    case Ending::handed_over: return "handed over to " + to_;
    case Ending::stopped: return "stopped";
    case Ending::lost: break;
  }
  return lease_.why_lost();
}

const void* Worker::member_of_this_thread() { return working_for; }

}  // namespace baton::partitions

namespace baton {

std::size_t Partition::number() const { return worker_->number(); }
const std::string& Partition::set() const { return worker_->set(); }
Token Partition::token() const { return worker_->lease().token(); }
Lease& Partition::lease() { return worker_->lease(); }
bool Partition::valid() const { return !worker_->ending() && worker_->lease().valid(); }
std::string Partition::why_ending() const { return worker_->why(); }
std::vector<FenceToken> Partition::tokens() const { return worker_->lease().tokens(); }

}  // namespace baton
