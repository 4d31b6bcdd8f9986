#include <algorithm>

#include "core/apply.h"
#include "core/obstacle.h"
#include "core/verbs.h"

namespace baton::core::verbs {
namespace {

bool superseded(const NameState& state, std::optional<std::int64_t> if_ordinal_below) {
  return if_ordinal_below && state.note.ordinal >= *if_ordinal_below;
}

bool entombed(const Step& step) {
  const auto& tombstones = step.states[0]->tombstones;
  return std::any_of(tombstones.begin(), tombstones.end(),
                     [&](const Tombstone& t) { return t.grant == step.request.grant; });
}

// at_least_for keeps the name taken even if its holder dies before.
StoreTime first_expiry(const Claimant& claimant, StoreTime now) {
  return now + StoreTime(std::max(claimant.ttl, claimant.at_least_for));
}

Obstacle obstacle_for(const Step& step) {
  Obstacle obstacle;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    const Waiter* own = find_waiter(*step.states[i], step.request.grant, false);
    obstacle.add(blockers_of(*step.states[i], step.request.grant, step.request.targets[i].mode,
                             own != nullptr ? own->turn : kLastTurn),
                 step.now);
  }
  return obstacle;
}

// Takes every target for `claimant`, whose modes come from the targets.
Reply take(Step& step, const Claimant& claimant) {
  const Note found = step.states[0]->note;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    NameState& state = *step.states[i];
    erase_waiter(state, claimant.grant, false);
    Holder holder;
    static_cast<Claimant&>(holder) = claimant;
    holder.mode = step.request.targets[i].mode;
    holder.token = step.table.next();
    holder.since = step.now;
    holder.expires = first_expiry(claimant, step.now);
    state.holders.push_back(std::move(holder));
    state.dirty = true;
  }
  step.effects.durable = true;
  make_change(*step.states[0], claimant.change, step.effects);
  return granted(step, found);
}

// The grant exists: a promoted waiter claims it, or a request is repeated. Either way its time
// starts again, so that `granted` always means a full TTL from when this request was sent.
Reply take_again(Step& step) {
  if (auto why = not_holding(step)) return outcome(Outcome::lost, std::move(*why));
  NameState& first = *step.states[0];
  Holder& holder = *find_holder(first, step.request.grant);
  const Note found = first.note;
  if (holder.state == HolderState::handed) {
    if (superseded(first, holder.if_ordinal_below)) {
      std::erase_if(first.holders, [&](const Holder& h) { return h.grant == step.request.grant; });
      first.dirty = true;
      step.settle_all();
      return outcome(Outcome::superseded);
    }
    holder.state = HolderState::held;
    holder.since = step.now;
    holder.expires = first_expiry(holder, step.now);
    make_change(first, holder.change, step.effects);
  }
  for (NameState* state : step.states) {
    extend(step, *state, *find_holder(*state, step.request.grant));
  }
  return granted(step, found);
}

bool any_held(const Step& step) {
  return std::any_of(step.states.begin(), step.states.end(), [&](NameState* state) {
    return find_holder(*state, step.request.grant) != nullptr;
  });
}

// Adds the request to the queue of each target, with one turn for all. A repetition only refreshes
// the places.
void queue_up(Step& step, const Claimant& claimant) {
  const StoreTime stale = step.now + StoreTime(step.request.queue_ttl);
  std::uint64_t turn = 0;
  for (NameState* state : step.states) {
    if (const Waiter* own = find_waiter(*state, claimant.grant, false)) turn = own->turn;
  }
  if (turn == 0) turn = step.table.next();
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    NameState& state = *step.states[i];
    if (Waiter* own = find_waiter(state, claimant.grant, false)) {
      own->stale = stale;
      state.dirty = true;
      continue;
    }
    Waiter waiter;
    static_cast<Claimant&>(waiter) = claimant;
    waiter.mode = step.request.targets[i].mode;
    waiter.turn = turn;
    waiter.stale = stale;
    waiter.claim_within = step.request.claim_within;
    waiter.alone = step.states.size() == 1;
    insert_waiter(state, std::move(waiter));
  }
}

}  // namespace

Reply acquire(Step& step) {
  step.settle_all();
  if (entombed(step)) return outcome(Outcome::lost, "cancelled before it arrived");
  if (any_held(step)) return take_again(step);
  if (superseded(*step.states[0], step.request.if_ordinal_below)) {
    for (NameState* state : step.states) erase_waiter(*state, step.request.grant, false);
    step.settle_all();
    return outcome(Outcome::superseded);
  }
  const Obstacle obstacle = obstacle_for(step);
  if (!obstacle.blocked) return take(step, claimant_of(step.request));
  if (step.request.queue_ttl <= Millis{0}) return obstacle.reply(Outcome::busy, step.now);
  queue_up(step, claimant_of(step.request));
  return obstacle.reply(Outcome::queued, step.now);
}

Reply claim(Step& step) {
  step.settle_all();
  if (any_held(step)) return take_again(step);
  for (NameState* state : step.states) {
    if (find_waiter(*state, step.request.grant, false) == nullptr) {
      return outcome(Outcome::lost, "no longer in the queue");
    }
  }
  const Waiter& own = *find_waiter(*step.states[0], step.request.grant, false);
  if (superseded(*step.states[0], own.if_ordinal_below)) {
    for (NameState* state : step.states) erase_waiter(*state, step.request.grant, false);
    step.settle_all();
    return outcome(Outcome::superseded);
  }
  const Obstacle obstacle = obstacle_for(step);
  if (!obstacle.blocked) return take(step, Claimant(own));
  if (step.request.queue_ttl > Millis{0}) {
    for (NameState* state : step.states) {
      find_waiter(*state, step.request.grant, false)->stale =
          step.now + StoreTime(step.request.queue_ttl);
      state->dirty = true;
    }
  }
  return obstacle.reply(Outcome::queued, step.now);
}

}  // namespace baton::core::verbs
