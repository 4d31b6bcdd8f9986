// The verbs of a holder: renew and convert.

#include <algorithm>

#include "core/obstacle.h"
#include "core/verbs.h"

namespace baton::core::verbs {
namespace {

bool waits_for(const NameState& state, const Holder& other, Mode held) {
  return std::any_of(state.waiters.begin(), state.waiters.end(), [&](const Waiter& w) {
    return w.converting && w.grant == other.grant && !compatible(held, w.mode);
  });
}

void queue_conversion(Step& step, const std::vector<Mode>& targets) {
  std::uint64_t turn = 0;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    NameState& state = *step.states[i];
    const Holder& holder = *find_holder(state, step.request.grant);
    if (covers(holder.mode, targets[i])) continue;
    std::uint64_t own_turn = 0;
    if (const Waiter* own = find_waiter(state, step.request.grant, true)) own_turn = own->turn;
    erase_waiter(state, step.request.grant, true);
    if (own_turn == 0) {
      if (turn == 0) turn = step.table.next();
      own_turn = turn;
    }
    Waiter waiter;
    static_cast<Claimant&>(waiter) = holder;
    waiter.mode = targets[i];
    waiter.turn = own_turn;
    waiter.stale = step.now + StoreTime(step.request.queue_ttl);
    waiter.alone = false;
    waiter.converting = true;
    insert_waiter(state, std::move(waiter));
  }
}

}  // namespace

// Touches only the holders of its own grant, so that a thousand renewals in a batch do not
// interact.
Reply renew(Step& step) {
  if (auto why = not_holding(step)) return outcome(Outcome::lost, std::move(*why));
  for (NameState* state : step.states) {
    Holder& holder = *find_holder(*state, step.request.grant);
    if (holder.state == HolderState::handed) return outcome(Outcome::lost, "not claimed yet");
  }
  const Note found = step.states[0]->note;
  for (NameState* state : step.states) {
    extend(step, *state, *find_holder(*state, step.request.grant));
  }
  make_change(*step.states[0], step.request.change, step.effects);
  return granted(step, found);
}

// A conversion is ahead of the queue: only the other holders can block it.
Reply convert(Step& step) {
  step.settle_all();
  if (auto why = not_holding(step)) return outcome(Outcome::lost, std::move(*why));
  std::vector<Mode> targets;
  Obstacle obstacle;
  bool deadlock = false;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    NameState& state = *step.states[i];
    const Holder& own = *find_holder(state, step.request.grant);
    if (own.state == HolderState::handed) return outcome(Outcome::lost, "not claimed yet");
    targets.push_back(converted(own.mode, step.request.targets[i].mode));
    if (covers(own.mode, targets[i])) continue;
    Blockers blockers = blockers_of(state, step.request.grant, targets[i], 0);
    blockers.waiters.clear();
    obstacle.add(blockers, step.now);
    for (const Holder* other : blockers.holders) {
      deadlock = deadlock || waits_for(state, *other, own.mode);
    }
  }
  if (deadlock) return obstacle.reply(Outcome::deadlock, step.now);
  if (obstacle.blocked && step.request.queue_ttl <= Millis{0}) {
    return obstacle.reply(Outcome::busy, step.now);
  }
  if (obstacle.blocked) {
    queue_conversion(step, targets);
    return obstacle.reply(Outcome::queued, step.now);
  }
  const Note found = step.states[0]->note;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    NameState& state = *step.states[i];
    Holder& own = *find_holder(state, step.request.grant);
    // A stronger hold is a new hold: its token must be above those that others had beside it.
    if (!covers(own.mode, targets[i])) own.token = step.table.next();
    own.mode = targets[i];
    extend(step, state, own);
    erase_waiter(state, step.request.grant, true);
  }
  Reply reply = granted(step, found);
  step.settle_all();
  return reply;
}

}  // namespace baton::core::verbs
