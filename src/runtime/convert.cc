// How a lease changes its mode. The store may have made a change whose reply was lost. While that
// is unknown, the lease claims the weaker of the two modes: on the way down, from before it sends
// the request; on the way up, until the request is granted.
//
//   turn taken ──▶ asking ──granted──▶ new mode, turn given back
//                    │ └──refused, timed out──▶ old mode, turn given back
//                    └──in doubt to the end──▶ weaker mode; the hub converts the store to it, and
//                                              gives the turn back when the store has answered

#include <algorithm>

#include "core/apply.h"
#include "core/backoff.h"
#include "core/bad_request.h"
#include "core/trust.h"
#include "runtime/client.h"
#include "runtime/deadline.h"
#include "runtime/held_lease.h"
#include "runtime/timing.h"

namespace baton::runtime {
namespace {

// How long to wait before asking again: soon enough to refresh the place in the queue.
Millis pause_after(const Reply& reply, Millis queue_ttl) {
  return std::clamp(reply.retry_after, kAskFloor, std::clamp(queue_ttl / 3, kAskFloor, kAskEvery));
}

// Whether to go on waiting. To a request that would queue, a store answers busy only if it cannot
// touch the name at the moment.
bool waits_on(const Reply& reply, const Request& request) {
  return reply.outcome == Outcome::queued ||
         (reply.outcome == Outcome::busy && request.queue_ttl > Millis(0));
}

Error under_way() {
  return {.code = Code::busy,
          .message = "another convert of this lease is under way",
          .retryable = true};
}

}  // namespace

void HeldLease::Conversion::doubt(Instant until) {
  in_doubt = true;
  late_until = until;
  in_queue = request.queue_ttl > Millis(0);
}

// A `queued` reply shows that no earlier request was granted. If it was sent after late_until, no
// earlier request can take effect any more either, so the doubt is over.
void HeldLease::Conversion::heard(const Reply& reply, Instant sent) {
  if (reply.outcome == Outcome::queued && sent >= late_until) in_doubt = false;
}

Result<void> HeldLease::convert(Mode mode, Millis wait) {
  if (!is_mode(mode)) return bad_request("unknown mode");
  if (inherited()) return lost_error();
  const Instant deadline = deadline_after(client_.clock().now(), wait);
  const Instant limit = deadline + client_.request_limit();
  if (!take_turn(deadline, limit)) return valid() ? under_way() : lost_error();
  auto request = conversion_to(mode);
  if (!request) {
    give_turn({});
    return request.error();
  }
  if (wait > Millis(0)) request->queue_ttl = core::queue_ttl_for(ttl_);
  Conversion conversion{.request = std::move(*request), .deadline = deadline, .limit = limit};
  {
    const std::lock_guard lock(mutex_);
    conversion.before = targets_;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const Mode target = conversion.request.targets[i].mode;
      if (covers(targets_[i].mode, target)) targets_[i].mode = target;
    }
  }
  auto result = ask(conversion);
  if (!result) return give_up(conversion, result.error());
  give_turn(conversion.late_until);
  return result;
}

bool HeldLease::take_turn(Instant deadline, Instant limit) {
  Clock& clock = client_.clock();
  std::unique_lock lock(mutex_);
  while (converting_) {
    if (ended_ || clock.now() >= deadline) return false;
    clock.wait(lock, poked_, deadline);
  }
  converting_ = true;
  // A request of the previous convert may still reach the store and must not undo this one.
  while (!ended_ && clock.now() < late_until_) {
    if (clock.now() >= limit) {
      converting_ = false;
      poked_.notify_all();
      return false;
    }
    clock.wait(lock, poked_, std::min(late_until_, limit));
  }
  return true;
}

void HeldLease::give_turn(Instant late_until) {
  const std::lock_guard lock(mutex_);
  converting_ = false;
  late_until_ = std::max(late_until_, late_until);
  poked_.notify_all();
}

// The mode that the caller asked for. A name that is also an ancestor of another name of the set is
// held at a stronger mode, so take the weakest.
Mode HeldLease::asked_mode() const {
  const std::lock_guard lock(mutex_);
  Mode weakest = targets_.front().mode;
  for (const LockName& name : names_) {
    const Mode mode = targets_[place_of(name)].mode;
    if (covers(weakest, mode)) weakest = mode;
  }
  return weakest;
}

// The request names the resulting modes, not the one that the caller asks for. Only so can it be
// repeated, and only so do the ancestors follow: from IX, a convert to S results in SIX; if S were
// sent and repeated, the store would go down to S.
Result<Request> HeldLease::conversion_to(Mode mode) const {
  const Mode target = converted(asked_mode(), mode);
  const Policy& policy = client_.policy();
  if (policy.version != 0) {
    for (const LockName& name : names_) {
      if (auto ok = check(policy, name, target, ttl_, metadata_); !ok) return ok.error();
    }
  }
  auto targets = targets_for(policy, names_, target);
  if (!targets) return targets.error();
  Request convert = request(Verb::convert);
  convert.targets = std::move(*targets);
  if (auto beyond = core::beyond(client_.can(), convert)) {
    return Error{.code = Code::unsupported, .message = std::move(*beyond)};
  }
  return convert;
}

// Asks until the store has granted or refused, or the time is up. Even a caller that does not wait
// for the lock waits as long as one request may take, to learn its outcome.
Result<void> HeldLease::ask(Conversion& conversion) {
  Clock& clock = client_.clock();
  const Request& convert = conversion.request;
  const Millis patience = client_.request_limit();
  const Instant answer_by =
      std::min(std::max(conversion.deadline, clock.now() + patience), conversion.limit);
  std::optional<Error> unanswered;
  core::Backoff backoff(Millis(50), kAskEvery);
  while (true) {
    if (!valid()) return lost_error();
    const std::uint64_t seen = pokes();
    const Instant sent = clock.now();
    if (unanswered && sent >= conversion.limit) return *unanswered;
    const auto reply =
        client_.submit(conversion.request, std::min(sent + patience, conversion.limit));
    Instant until = answer_by;
    Millis pause{0};
    if (!reply) {
      // It may have been sent as late as now.
      if (reply.error().in_doubt) conversion.doubt(clock.now() + client_.can().apply_limit);
      if (!conversion.in_doubt || clock.now() >= answer_by) return reply.error();
      unanswered = reply.error();
      pause = backoff.next(id_.low);
    } else if (reply->outcome == Outcome::granted) {
      take_over(convert.targets, *reply, sent);
      return {};
    } else if (waits_on(*reply, convert)) {
      conversion.in_queue = true;
      conversion.heard(*reply, sent);
      until = conversion.deadline;
      pause = pause_after(*reply, convert.queue_ttl);
      if (clock.now() >= until) {
        Error busy = error_of(*reply, convert);
        busy.code = Code::timed_out;
        return busy;
      }
    } else {
      if (reply->outcome == Outcome::lost) lose(Loss::refused, reply->message);
      return error_of(*reply, convert);
    }
    await_poke(seen, std::min(until, clock.now() + pause));
  }
}

std::uint64_t HeldLease::pokes() const {
  const std::lock_guard lock(mutex_);
  return pokes_;
}

void HeldLease::await_poke(std::uint64_t seen, Instant until) {
  Clock& clock = client_.clock();
  std::unique_lock lock(mutex_);
  while (pokes_ == seen && clock.now() < until) clock.wait(lock, poked_, until);
}

void HeldLease::take_over(const std::vector<Target>& targets, const Reply& reply, Instant sent) {
  {
    const std::lock_guard lock(mutex_);
    claim(targets);
    tokens_ = reply.tokens;
  }
  client_.keeper().renewed(*this, sent);
}

void HeldLease::claim(const std::vector<Target>& targets) {
  for (std::size_t i = 0; i < targets_.size(); ++i) targets_[i].mode = targets[i].mode;
}

Error HeldLease::give_up(const Conversion& conversion, Error error) {
  if (conversion.in_queue) leave_queue(!conversion.in_doubt && valid(), conversion.limit);
  if (conversion.in_doubt) {
    error.in_doubt = true;
    reconcile_store(conversion.late_until);
    return error;
  }
  {
    const std::lock_guard lock(mutex_);
    claim(conversion.before);
  }
  give_turn({});
  return error;
}

// Leaves the queue before this returns if the turn is given back now: a later cancel would remove
// the next convert from the queue.
void HeldLease::leave_queue(bool at_once, Instant limit) {
  Request cancel = request(Verb::cancel);
  cancel.converting = true;
  if (at_once) {
    const auto reply = client_.submit(cancel, limit);
    if (reply && reply->outcome != Outcome::busy) return;
  }
  client_.hub().undo(std::move(cancel), client_.clock().now(), over());
}

// Converts the store to the modes that the lease claims. They are no stronger than what the store
// may have, so nothing conflicts. Starts when no earlier request can arrive any more. The turn
// stays taken until then: this convert down must not follow a later convert up.
void HeldLease::reconcile_store(Instant from) {
  const Instant now = client_.clock().now();
  client_.hub().undo(request(Verb::convert), from, now + kMaxTtl,
                     [weak = weak_from_this()](const Result<WaitResult>& answer) {
                       const auto self = weak.lock();
                       if (self != nullptr && answer)
                         self->store_reconciled(answer->reply, answer->sent);
                     });
}

// If the store refused, it keeps a stronger mode than the lease claims until the lease ends, which
// is safe.
void HeldLease::store_reconciled(const Reply& reply, Instant sent) {
  if (reply.outcome == Outcome::granted) take_over(request(Verb::convert).targets, reply, sent);
  if (reply.outcome == Outcome::lost) lose(Loss::refused, reply.message);
  // Earlier tries of the hub may still reach the store.
  give_turn(client_.clock().now() + client_.can().apply_limit);
}

}  // namespace baton::runtime
