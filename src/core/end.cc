// The verbs that end a grant: release, cancel, break.

#include <algorithm>

#include "core/describe.h"
#include "core/verbs.h"

namespace baton::core::verbs {
namespace {

Waiter* waiter_of_owner(NameState& state, const std::string& owner) {
  const auto it = std::find_if(state.waiters.begin(), state.waiters.end(), [&](const Waiter& w) {
    return w.alone && !w.converting && w.owner == owner;
  });
  return it == state.waiters.end() ? nullptr : &*it;
}

// Ends the grant on one name, or leaves it parked until its at-least-for time is over.
void end_hold(const Step& step, NameState& state, Holder& holder) {
  const StoreTime at_least_until = holder.since + StoreTime(holder.at_least_for);
  if (holder.state == HolderState::held && at_least_until > step.now) {
    holder.state = HolderState::parked;
    holder.expires = at_least_until;
  } else {
    std::erase_if(state.holders, [&](const Holder& h) { return h.grant == step.request.grant; });
  }
  erase_waiter(state, step.request.grant, true);
  state.dirty = true;
}

}  // namespace

Reply release(Step& step) {
  const Request& request = step.request;
  step.settle_all();
  NameState& first = *step.states[0];
  const auto live = [&](NameState& state) {
    Holder* holder = find_holder(state, request.grant);
    return holder != nullptr && holder->state != HolderState::parked ? holder : nullptr;
  };
  if (!request.to.empty()) {
    if (live(first) == nullptr) return outcome(Outcome::lost, "the grant has ended");
    Waiter* successor = waiter_of_owner(first, request.to);
    if (successor == nullptr)
      return outcome(Outcome::denied, "nobody of '" + request.to + "' waits");
    Waiter moved = *successor;
    erase_waiter(first, moved.grant, false);
    // Turn 0 is ahead of every ordinary waiter; counters start at 1.
    moved.turn = 0;
    insert_waiter(first, std::move(moved));
  }
  bool all = true;
  if (live(first) != nullptr) make_change(first, request.change, step.effects);
  for (NameState* state : step.states) {
    if (Holder* holder = live(*state)) {
      end_hold(step, *state, *holder);
    } else {
      all = false;
    }
  }
  step.settle_all();
  return all ? outcome(Outcome::done) : outcome(Outcome::lost, "the grant has ended");
}

Reply cancel(Step& step) {
  const Request& request = step.request;
  step.settle_all();
  for (NameState* state : step.states) {
    erase_waiter(*state, request.grant, true);
    if (request.converting) continue;
    erase_waiter(*state, request.grant, false);
    // No work was done under a cancelled grant, so at_least_for does not keep it.
    if (std::erase_if(state->holders, [&](const Holder& h) {
          return h.grant == request.grant && h.state != HolderState::parked;
        }) > 0) {
      state->dirty = true;
    }
  }
  if (!request.converting && request.tombstone_ttl > Millis{0}) {
    NameState& first = *step.states[0];
    std::erase_if(first.tombstones, [&](const Tombstone& t) { return t.grant == request.grant; });
    first.tombstones.push_back({request.grant, step.now + StoreTime(request.tombstone_ttl)});
    first.dirty = true;
    step.effects.durable = true;
  }
  step.settle_all();
  return outcome(Outcome::done);
}

Reply break_holders(Step& step) {
  const Request& request = step.request;
  step.settle_all();
  NameState& state = *step.states[0];
  Reply reply = outcome(Outcome::done);
  for (Holder& holder : state.holders) {
    if (!request.grant.empty() && holder.grant != request.grant) continue;
    reply.holders.push_back(show(holder, step.now));
    holder.revoked = true;
    holder.reason = request.reason;
    step.effects.wakes.push_back({holder.channel, holder.grant});
    state.dirty = true;
  }
  if (request.immediately) {
    std::erase_if(state.holders, [&](const Holder& h) {
      return request.grant.empty() || h.grant == request.grant;
    });
    step.settle_all();
  }
  if (!reply.holders.empty()) step.effects.durable = true;
  return reply;
}

}  // namespace baton::core::verbs
