// One pass of a member: look, ask plan.h what to do, do it.

#include <algorithm>
#include <utility>

#include "core/permanent_error.h"
#include "partitions/member.h"

namespace baton::partitions {
namespace {

constexpr Millis kLookTimeout{2'000};

}  // namespace

Result<void> Member::pass() {
  auto seen = look(locks_, *set_, kLookTimeout);
  if (!seen) {
    tell_trouble(seen.error());
    return {};
  }
  if (const std::string why = kept_out_by(*seen); !why.empty()) {
    stand_aside(why);
    return {};
  }
  if (!is_member()) {
    auto joined = join(*seen);
    if (!joined) return joined.error();
    if (!*joined) return {};
  }
  last_trouble_.clear();
  act(decide(view_of(*seen)));
  return {};
}

// Looks once more behind the registration: of two that join at the same time with different counts,
// the second sees the first.
Result<bool> Member::join(Look& seen) {
  auto lease = locks_.try_acquire(set_->member(locks_.owner()),
                                  {.ttl = options_.ttl, .metadata = metadata()});
  if (!lease) {
    Error& error = lease.error();
    if (is_permanent(error)) return error;
    if (error.code == Code::busy) {
      error.message =
          "another live replica takes part in '" + name_ + "' as '" + locks_.owner() + "'";
    }
    tell_trouble(error);
    return false;
  }
  registration_ = std::move(*lease);
  auto again = look(locks_, *set_, kLookTimeout);
  if (!again) {
    tell_trouble(again.error());
    return false;
  }
  seen = std::move(*again);
  if (const std::string why = kept_out_by(seen); !why.empty()) {
    stand_aside(why);
    return false;
  }
  return true;
}

// Why this replica may not take part, empty if it may: an older member divides the set by another
// count, or so does an owner that has left and still drains.
std::string Member::kept_out_by(const Look& seen) const {
  const auto says = [this](const SeenLock& lock) {
    return "'" + lock.holder.owner + "' divides '" + name_ + "' by " + std::to_string(lock.count) +
           ", and this replica by " + std::to_string(count_) + ": it waits until that one has gone";
  };
  const auto differs = [this](const SeenLock& lock) {
    return lock.count != 0 && lock.count != count_ && lock.holder.owner != locks_.owner();
  };
  for (const SeenLock& member : seen.members) {
    if (!differs(member)) continue;
    if (!is_member() || member.holder.token < registration_.token()) return says(member);
  }
  const std::lock_guard lock(mutex_);
  if (!workers_.empty()) return {};
  const auto old = std::find_if(seen.partitions.begin(), seen.partitions.end(), differs);
  return old == seen.partitions.end() ? std::string() : says(*old);
}

void Member::stand_aside(const std::string& why) {
  tell_trouble({.code = Code::denied, .message = why, .retryable = true});
  if (registration_) registration_.release_async();
  registration_ = Lease();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    withdraw(i);
    if (const auto at_work = worker(i)) {
      slots_[i].own = Own::draining;
      at_work->end(Ending::stopped);
    }
  }
}

View Member::view_of(const Look& seen) {
  View view{.self = locks_.owner()};
  view.may_take = clock_.now() >= take_nothing_before_;
  for (const SeenLock& member : seen.members) view.members.push_back(member.last);
  view.partitions.resize(count_);
  for (const SeenLock& lock : seen.partitions) {
    const auto number = parse_number(lock.last);
    if (!number || *number >= count_) continue;
    Seen& partition = view.partitions[*number];
    partition.holder = lock.holder.owner;
    partition.token = lock.holder.token;
    partition.waiters = lock.waiters;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    Seen& partition = view.partitions[i];
    const auto at_work = worker(i);
    if (at_work != nullptr && at_work->ending()) slot.own = Own::draining;
    partition.own = slot.own;
    if (!partition.holder.empty()) {
      slot.free_since.reset();
      continue;
    }
    if (!slot.free_since) slot.free_since = clock_.now();
    partition.free_for = std::chrono::floor<Millis>(clock_.now() - *slot.free_since);
  }
  return view;
}

void Member::act(const Plan& plan) {
  for (const HandOver& hand_over : plan.hand_over) {
    slots_[hand_over.partition].own = Own::draining;
    if (const auto at_work = worker(hand_over.partition)) {
      at_work->end(Ending::handed_over, hand_over.to);
    }
  }
  for (const std::size_t i : plan.withdraw) withdraw(i);
  for (const std::size_t i : plan.take) ask(i, Own::taking, Millis(0));
  for (const std::size_t i : plan.wait_for) ask(i, Own::waiting, kMaxWait);
  if (plan.look_again_in) {
    look_at_ = std::min<Instant>(look_at_, clock_.now() + *plan.look_again_in);
  }
}

// The requests of one pass travel together.
void Member::ask(std::size_t partition, Own as, Millis wait) {
  Slot& slot = slots_[partition];
  slot.own = as;
  slot.request = ++last_request_;
  slot.withdrawn = std::stop_source();
  ++unanswered_;
  locks_.acquire_async(
      {set_->partition(partition)},
      {.ttl = options_.ttl,
       .wait = wait,
       .metadata = metadata(),
       .stop = slot.withdrawn.get_token()},
      [self = shared_from_this(), partition, request = slot.request](Result<Lease> answer) {
        self->post({.partition = partition, .request = request, .answer = std::move(answer)});
      });
}

void Member::withdraw(std::size_t partition) {
  Slot& slot = slots_[partition];
  if (slot.own != Own::waiting && slot.own != Own::taking) return;
  slot.own = Own::none;
  slot.request = 0;
  slot.withdrawn.request_stop();
}

}  // namespace baton::partitions
