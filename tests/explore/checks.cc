#include "explore/checks.h"

#include <algorithm>

#include "explore/client_side.h"

namespace baton::explore {
namespace {

const HolderCell* holder_of(const NameCell& name, Grant grant) {
  const auto* it = std::find_if(name.holders.begin(), name.holders.end(),
                                [&](const HolderCell& h) { return h.grant == grant; });
  return it == name.holders.end() ? nullptr : it;
}

const WaiterCell* waiter_of(const NameCell& name, Grant grant, bool converting) {
  const auto* it = std::find_if(name.waiters.begin(), name.waiters.end(), [&](const WaiterCell& w) {
    return w.grant == grant && w.converting == converting;
  });
  return it == name.waiters.end() ? nullptr : it;
}

struct Belief {
  std::size_t client;
  std::size_t name;
  Mode mode;
  std::uint8_t token;
  bool trusted;
};

template <typename Visit>
void for_each_belief(const World& world, const Setting& setting, Visit visit) {
  for (std::size_t i = 0; i < setting.clients; ++i) {
    const ClientCell& client = world.clients[i];
    if (!holds(client.phase)) continue;
    const auto& targets = setting.orders[client.order].targets;
    for (const Target& target : targets) {
      const std::size_t name = name_index(setting, target.key);
      visit(Belief{i, name, believed_mode(client, target), client.tokens[name], client.trust > 0});
    }
  }
}

std::string broken_between(const Belief& a, const Belief& b) {
  if (a.client == b.client || a.name != b.name || compatible(a.mode, b.mode)) return {};
  const auto who = [](const Belief& belief) {
    return std::string(1, static_cast<char>('A' + belief.client));
  };
  if (a.trusted && b.trusted) {
    return "exclusion: " + who(a) + " and " + who(b) + " both believe to hold one name";
  }
  // A paused ex-holder still has its token in hand: the fence must be able to refuse it.
  if (a.trusted && a.token <= b.token) {
    return "fencing: the late holder " + who(b) + " has a token that is not below that of " +
           who(a);
  }
  return {};
}

std::string broken_belief(const World& world, const Setting& setting) {
  FixedList<Belief, kMaxClients * kMaxNames> beliefs;
  for_each_belief(world, setting, [&](const Belief& belief) { beliefs.push_back(belief); });
  for (const Belief& a : beliefs) {
    for (const Belief& b : beliefs) {
      if (auto problem = broken_between(a, b); !problem.empty()) return problem;
    }
  }
  return {};
}

std::string broken_end(const World& world, const Setting& setting) {
  for (const NameCell& name : world.names) {
    for (const HolderCell& holder : name.holders) {
      const bool handed = holder.state == core::HolderState::handed;
      if (holder.left > (handed ? setting.claim_within : setting.ttl)) {
        return "no orphans: " + grant_text(holder.grant) + " is kept longer than its time";
      }
    }
    for (const WaiterCell& waiter : name.waiters) {
      if (waiter.left > setting.queue_ttl)
        return "no orphans: a waiter is kept longer than its ticket";
    }
    for (const TombstoneCell& tombstone : name.tombstones) {
      if (tombstone.left > setting.life) return "no orphans: a tombstone is kept too long";
    }
  }
  return {};
}

// Of two conversions that wait for each other the second is refused, so such a pair never stands.
std::string broken_conversion(const NameCell& name) {
  for (const WaiterCell& a : name.waiters) {
    for (const WaiterCell& b : name.waiters) {
      if (!a.converting || !b.converting || a.grant == b.grant) continue;
      const HolderCell* holder_a = holder_of(name, a.grant);
      const HolderCell* holder_b = holder_of(name, b.grant);
      if (holder_a == nullptr || holder_b == nullptr) continue;
      const bool alive = a.left > 0 && b.left > 0 && holder_a->left > 0 && holder_b->left > 0;
      if (alive && !compatible(holder_a->mode, b.mode) && !compatible(holder_b->mode, a.mode)) {
        return "deadlock: " + grant_text(a.grant) + " and " + grant_text(b.grant) +
               " wait for each other to convert";
      }
    }
  }
  return {};
}

// What was cancelled must not come back: its client has gone.
std::string broken_cancel(const World& world) {
  for (const Grant grant : world.cancelled) {
    for (const NameCell& name : world.names) {
      if (holder_of(name, grant) != nullptr || waiter_of(name, grant, false) != nullptr) {
        return "no orphans: " + grant_text(grant) + " came back after it was cancelled";
      }
    }
  }
  return {};
}

// `holder` was not there before: was everybody whose turn came earlier served, or no longer live?
std::string broken_turn(const NameCell& before, const NameCell& after, const HolderCell& holder) {
  const WaiterCell* place = waiter_of(before, holder.grant, false);
  if (place != nullptr && place->left == 0) place = nullptr;
  for (const WaiterCell& other : after.waiters) {
    const WaiterCell* then = waiter_of(before, other.grant, other.converting);
    if (other.grant == holder.grant || then == nullptr || then->left == 0) continue;
    const bool earlier = other.converting || place == nullptr || other.turn < place->turn;
    if (earlier && !compatible(other.mode, holder.mode)) {
      return "order: " + grant_text(holder.grant) + " was granted past the earlier waiter " +
             grant_text(other.grant);
    }
  }
  return {};
}

// Tokens granted in one step may stand in any order; each must be above all of earlier steps.
std::string broken_token(const NameCell& before, const NameCell& after, const HolderCell& holder) {
  const HolderCell* earlier = holder_of(before, holder.grant);
  if (earlier != nullptr && earlier->token == holder.token) {
    if (earlier->left == 0 && holder.left > 0) {
      return "ended is ended: the expired grant " + grant_text(holder.grant) + " lives again";
    }
    if (!covers(earlier->mode, holder.mode)) {
      return "tokens: " + grant_text(holder.grant) + " became stronger under its old token";
    }
    return {};
  }
  const bool unique = std::none_of(
      after.holders.begin(), after.holders.end(),
      [&](const HolderCell& h) { return h.grant != holder.grant && h.token == holder.token; });
  if (unique && holder.token > before.top) return {};
  return "tokens: " + grant_text(holder.grant) +
         " was granted a token that is not above all before";
}

// Live waiters stay where they are, unless they are promoted or leave by their own request.
std::string broken_queue(const NameCell& before, const NameCell& after, Grant asking) {
  const WaiterCell* previous = nullptr;
  for (const WaiterCell& waiter : before.waiters) {
    if (waiter.grant == asking || waiter.left == 0) continue;
    const WaiterCell* now = waiter_of(after, waiter.grant, waiter.converting);
    const HolderCell* holder = holder_of(after, waiter.grant);
    if (waiter.converting && (holder == nullptr || holder->left == 0)) continue;
    if (now == nullptr) {
      if (holder != nullptr && !waiter.converting) continue;
      return "order: the live waiter " + grant_text(waiter.grant) + " was dropped";
    }
    if (previous != nullptr && now < previous) return "order: waiters changed places";
    previous = now;
  }
  const WaiterCell* own = waiter_of(after, asking, false);
  const WaiterCell* own_before = waiter_of(before, asking, false);
  const bool in_place = own_before != nullptr && own_before->left > 0;
  for (const WaiterCell& waiter : after.waiters) {
    if (own == nullptr || waiter.converting || waiter.grant == asking) continue;
    const WaiterCell* then = waiter_of(before, waiter.grant, false);
    const bool was_ahead = then != nullptr && (!in_place || then < own_before);
    if (was_ahead != (&waiter < own)) {
      return "order: " + grant_text(asking) + " did not keep its place in the queue";
    }
  }
  return {};
}

std::string broken_wake(const NameCell& before, const HolderCell& holder,
                        const core::Effects& effects) {
  if (holder.state != core::HolderState::handed || holder_of(before, holder.grant) != nullptr) {
    return {};
  }
  const bool woken = std::any_of(
      effects.wakes.begin(), effects.wakes.end(),
      [&](const core::Wake& wake) { return wake.grant.low == holder.grant + std::uint64_t{1}; });
  return woken ? "" : "wake: " + grant_text(holder.grant) + " was promoted and not told";
}

}  // namespace

std::string broken_in_state(const World& world, const Setting& setting) {
  if (auto problem = broken_belief(world, setting); !problem.empty()) return problem;
  if (auto problem = broken_end(world, setting); !problem.empty()) return problem;
  for (const NameCell& name : world.names) {
    if (auto problem = broken_conversion(name); !problem.empty()) return problem;
  }
  return broken_cancel(world);
}

std::string broken_by_answer(const World& before, World& after, const MessageCell& message,
                             const core::Effects& effects, const Setting& setting) {
  for (std::size_t i = 0; i < setting.names.size(); ++i) {
    const NameCell& then = before.names[i];
    NameCell& now = after.names[i];
    for (const HolderCell& holder : now.holders) {
      if (auto problem = broken_token(then, now, holder); !problem.empty()) return problem;
      if (auto problem = broken_wake(then, holder, effects); !problem.empty()) return problem;
      now.top = std::max(now.top, holder.token);
      const HolderCell* earlier = holder_of(then, holder.grant);
      const bool is_new = earlier == nullptr || (earlier->left == 0 && holder.left > 0);
      if (!is_new) continue;
      if (auto problem = broken_turn(then, now, holder); !problem.empty()) return problem;
    }
    if (auto problem = broken_queue(then, now, message.grant); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace baton::explore
