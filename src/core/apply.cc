#include "core/apply.h"

#include <algorithm>

#include "core/settle.h"

namespace baton::core {
namespace {

// One request on its way through: the table, the states of its asks in their order, and now.
struct Step {
  LockTable& table;
  const Request& request;
  StoreTime now;
  Effects& effects;
  std::vector<NameState*> states;

  void settle_all() const {
    for (NameState* state : states) settle(table, *state, now, effects);
  }
};

Reply outcome(Outcome outcome, std::string message = {}) {
  Reply reply;
  reply.outcome = outcome;
  reply.message = std::move(message);
  return reply;
}

Millis millis_up(StoreTime time) { return std::chrono::ceil<Millis>(std::max(time, StoreTime{0})); }

HolderInfo show(const Holder& holder, StoreTime now) {
  HolderInfo info;
  info.grant = holder.grant;
  info.mode = holder.mode;
  info.token = holder.token;
  info.predicate = holder.predicate;
  info.owner = holder.owner;
  info.metadata = holder.metadata;
  info.ttl = holder.ttl;
  info.held_for = std::chrono::floor<Millis>(now - holder.since);
  info.expires_in = millis_up(holder.expires - now);
  info.claimed = holder.state != HolderState::handed;
  info.released = holder.state == HolderState::parked;
  info.revoked = holder.revoked;
  info.reason = holder.reason;
  return info;
}

void make_change(NameState& state, const NoteChange& change, Effects& effects) {
  if (change.empty()) return;
  if (change.ordinal) state.note.ordinal = *change.ordinal;
  if (change.text) state.note.text = *change.text;
  state.dirty = true;
  effects.durable = true;
}

bool superseded(const NameState& state, std::optional<std::int64_t> if_ordinal_below) {
  return if_ordinal_below && state.note.ordinal >= *if_ordinal_below;
}

bool entombed(const Step& step) {
  const auto& tombstones = step.states[0]->tombstones;
  return std::any_of(tombstones.begin(), tombstones.end(),
                     [&](const Tombstone& t) { return t.grant == step.request.grant; });
}

// Every state of the request has a live holder of its grant that may go on: not parked, not
// revoked.
std::optional<std::string> not_holding(const Step& step) {
  for (NameState* state : step.states) {
    const Holder* holder = find_holder(*state, step.request.grant);
    if (holder == nullptr || holder->expires <= step.now || holder->state == HolderState::parked) {
      return "the grant has ended";
    }
    if (holder->revoked) return "revoked: " + holder->reason;
  }
  return std::nullopt;
}

// at_least_for keeps the name taken even if its holder dies before.
StoreTime first_expiry(const Claimant& claimant, StoreTime now) {
  return now + StoreTime(std::max(claimant.ttl, claimant.at_least_for));
}

void extend(Step& step, NameState& state, Holder& holder) {
  holder.expires = std::max(holder.expires, step.now + StoreTime(holder.ttl));
  state.dirty = true;
  step.effects.durable = true;
}

Reply granted(const Step& step, Note note) {
  Reply reply = outcome(Outcome::granted);
  reply.note = std::move(note);
  for (NameState* state : step.states) {
    reply.tokens.push_back(find_holder(*state, step.request.grant)->token);
  }
  return reply;
}

// Who is in the way of a request, and when the first of them goes by itself.
struct Obstacle {
  bool blocked = false;
  std::vector<HolderInfo> holders;
  std::optional<StoreTime> holder_ends;
  std::optional<StoreTime> waiter_ends;

  void add(const Blockers& blockers, StoreTime now) {
    blocked = blocked || !blockers.none();
    for (const Holder* holder : blockers.holders) {
      holder_ends = std::min(holder_ends.value_or(holder->expires), holder->expires);
      if (holders.size() < kMaxHoldersShown) holders.push_back(show(*holder, now));
    }
    for (const Waiter* waiter : blockers.waiters) {
      waiter_ends = std::min(waiter_ends.value_or(waiter->stale), waiter->stale);
    }
  }

  // Holders count first: while one is in the way, a waiter that goes changes nothing.
  [[nodiscard]] Reply reply(Outcome what, StoreTime now) const {
    Reply reply = outcome(what);
    reply.holders = holders;
    const auto ends = holder_ends ? holder_ends : waiter_ends;
    reply.retry_after = ends ? millis_up(*ends - now) : Millis{0};
    return reply;
  }
};

Obstacle obstacle_for(const Step& step) {
  Obstacle obstacle;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    const Waiter* own = find_waiter(*step.states[i], step.request.grant, false);
    obstacle.add(blockers_of(*step.states[i], step.request.grant, step.request.asks[i].mode,
                             own != nullptr ? own->turn : kLastTurn),
                 step.now);
  }
  return obstacle;
}

// Takes every ask for `claimant`, whose modes come from the asks.
Reply take(Step& step, const Claimant& claimant) {
  const Note found = step.states[0]->note;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    NameState& state = *step.states[i];
    erase_waiter(state, claimant.grant, false);
    Holder holder;
    static_cast<Claimant&>(holder) = claimant;
    holder.mode = step.request.asks[i].mode;
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

// The grant is there: a promoted waiter comes for it, or a request is repeated. Either way its time
// starts again, so that `granted` always means a full ttl from when this request was sent.
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

// A place in every queue of the request, all with one turn. Repeating it only refreshes.
void queue_up(Step& step, const Claimant& claimant) {
  const StoreTime stale = step.now + StoreTime(step.request.ticket);
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
    waiter.mode = step.request.asks[i].mode;
    waiter.turn = turn;
    waiter.stale = stale;
    waiter.handoff = step.request.handoff;
    waiter.alone = step.states.size() == 1;
    insert_waiter(state, std::move(waiter));
  }
}

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
  if (step.request.ticket <= Millis{0}) return obstacle.reply(Outcome::busy, step.now);
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
  if (step.request.ticket > Millis{0}) {
    for (NameState* state : step.states) {
      find_waiter(*state, step.request.grant, false)->stale =
          step.now + StoreTime(step.request.ticket);
      state->dirty = true;
    }
  }
  return obstacle.reply(Outcome::queued, step.now);
}

// Touches nothing but its own holders: a thousand renewals in a batch must not meet each other.
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
    waiter.stale = step.now + StoreTime(step.request.ticket);
    waiter.alone = false;
    waiter.converting = true;
    insert_waiter(state, std::move(waiter));
  }
}

// Ahead of the queue: only the other holders are asked.
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
    targets.push_back(converted(own.mode, step.request.asks[i].mode));
    if (covers(own.mode, targets[i])) continue;
    Blockers blockers = blockers_of(state, step.request.grant, targets[i], 0);
    blockers.waiters.clear();
    obstacle.add(blockers, step.now);
    for (const Holder* other : blockers.holders) {
      deadlock = deadlock || waits_for(state, *other, own.mode);
    }
  }
  if (deadlock) return obstacle.reply(Outcome::deadlock, step.now);
  if (obstacle.blocked && step.request.ticket <= Millis{0}) {
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
    Waiter* heir = waiter_of_owner(first, request.to);
    if (heir == nullptr) return outcome(Outcome::denied, "nobody of '" + request.to + "' waits");
    Waiter moved = *heir;
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
    // Nobody ever worked under a grant that is cancelled, so at_least_for does not keep it.
    if (std::erase_if(state->holders, [&](const Holder& h) {
          return h.grant == request.grant && h.state != HolderState::parked;
        }) > 0) {
      state->dirty = true;
    }
  }
  if (!request.converting && request.tombstone > Millis{0}) {
    NameState& first = *step.states[0];
    std::erase_if(first.tombstones, [&](const Tombstone& t) { return t.grant == request.grant; });
    first.tombstones.push_back({request.grant, step.now + StoreTime(request.tombstone)});
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

Reply look(Step& step) {
  Reply reply = outcome(Outcome::done);
  reply.info = describe(step.request.asks[0].key, *step.states[0], step.now, ~std::size_t{0});
  return reply;
}

bool schema_matters(Verb verb) {
  return verb == Verb::acquire || verb == Verb::claim || verb == Verb::convert;
}

Reply dispatch(Step& step) {
  switch (step.request.verb) {
    case Verb::acquire: return acquire(step);
    case Verb::claim: return claim(step);
    case Verb::renew: return renew(step);
    case Verb::convert: return convert(step);
    case Verb::release: return release(step);
    case Verb::cancel: return cancel(step);
    case Verb::break_: return break_holders(step);
    case Verb::get: return look(step);
  }
  return outcome(Outcome::invalid, "unknown verb");
}

}  // namespace

Claimant claimant_of(const Request& request) {
  Claimant claimant;
  claimant.grant = request.grant;
  claimant.ttl = request.ttl;
  claimant.at_least_for = request.at_least_for;
  claimant.if_ordinal_below = request.if_ordinal_below;
  claimant.change = request.change;
  claimant.predicate = request.predicate;
  claimant.owner = request.owner;
  claimant.channel = request.channel;
  claimant.metadata = request.metadata;
  return claimant;
}

std::int64_t schema_version(const LockTable& table) {
  const auto it = table.names.find(std::string(kSchemaKey));
  return it == table.names.end() ? 0 : it->second.note.ordinal;
}

Reply apply(LockTable& table, const Request& request, StoreTime now, Effects& effects) {
  if (auto rule = broken_rule(request)) return outcome(Outcome::invalid, std::move(*rule));
  if (schema_matters(request.verb) && request.asks[0].key != kSchemaKey) {
    const auto version = schema_version(table);
    if (version != request.schema_version) {
      return outcome(Outcome::denied, "the store has schema version " + std::to_string(version) +
                                          ", this client " +
                                          std::to_string(request.schema_version));
    }
  }
  Step step{table, request, now, effects, {}};
  step.states.reserve(request.asks.size());
  for (const Ask& ask : request.asks) step.states.push_back(&table.names[ask.key]);
  return dispatch(step);
}

bool forgettable(const NameState& state, StoreTime now) {
  const auto over = [&](StoreTime end) { return end <= now; };
  return state.note == Note{} &&
         std::all_of(state.holders.begin(), state.holders.end(),
                     [&](const Holder& h) { return over(h.expires); }) &&
         std::all_of(state.waiters.begin(), state.waiters.end(),
                     [&](const Waiter& w) { return over(w.stale); }) &&
         std::all_of(state.tombstones.begin(), state.tombstones.end(),
                     [&](const Tombstone& t) { return over(t.until); });
}

LockInfo describe(const std::string& key, const NameState& state, StoreTime now,
                  std::size_t max_waiters) {
  LockInfo info;
  info.key = key;
  info.note = state.note;
  for (const Holder& holder : state.holders) {
    if (holder.expires > now) info.holders.push_back(show(holder, now));
  }
  const auto holds = [&](GrantId grant) {
    return std::any_of(info.holders.begin(), info.holders.end(),
                       [&](const HolderInfo& holder) { return holder.grant == grant; });
  };
  for (const Waiter& waiter : state.waiters) {
    if (waiter.stale <= now || (waiter.converting && !holds(waiter.grant))) continue;
    ++info.waiting;
    if (info.waiters.size() >= max_waiters) continue;
    info.waiters.push_back(
        {waiter.grant, waiter.mode, waiter.predicate, waiter.owner, waiter.converting});
  }
  return info;
}

}  // namespace baton::core
