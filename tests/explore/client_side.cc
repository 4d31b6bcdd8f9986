#include "explore/client_side.h"

#include <algorithm>

#include "core/trust.h"

namespace baton::explore {
namespace {

constexpr std::int8_t kLongAgo = -100;

// How many ticks a client trusts a lease that it asked for at `sent`: the production rule.
std::int8_t trust_from(std::int8_t sent, const Setting& setting) {
  const Instant now{std::chrono::hours(1)};
  const Instant until = core::trusted_until(now + sent * kTick, setting.ttl_time());
  const auto ticks = (until - now + kTick - Instant::duration(1)) / Instant::duration(kTick);
  return static_cast<std::int8_t>(std::clamp<std::int64_t>(ticks, 0, 100));
}

// Replies that came too late to be trusted are all the same.
std::int8_t aged(std::int8_t sent, int ticks, const Setting& setting) {
  if (sent == kLongAgo) return sent;
  const auto older = static_cast<std::int8_t>(sent - ticks);
  return trust_from(older, setting) == 0 ? kLongAgo : older;
}

Grant grant_now(const World& world, std::size_t client) {
  return grant_of(client, world.clients[client].begun);
}

// From here on, nobody waits for what this client has sent so far.
void stop_waiting(World& world, std::size_t client) {
  world.clients[client].reply = {};
  for (MessageCell& message : world.messages) {
    if (client_of(message.grant) != client) continue;
    message.current = false;
    message.sent = 0;
  }
}

void send(World& world, const Setting& setting, std::size_t client, Verb verb, Phase phase) {
  stop_waiting(world, client);
  world.clients[client].phase = phase;
  MessageCell message;
  message.grant = grant_now(world, client);
  message.verb = verb;
  message.order = world.clients[client].order;
  message.life = static_cast<std::int8_t>(setting.life);
  message.current = true;
  message.converting = phase == Phase::unconverting;
  world.messages.push_back(message);
}

void go_idle(World& world, std::size_t client) {
  stop_waiting(world, client);
  ClientCell fresh;
  fresh.begun = world.clients[client].begun;
  fresh.steady = world.clients[client].steady;
  world.clients[client] = fresh;
}

void hold(ClientCell& client, const ReplyCell& reply, const Setting& setting) {
  client.phase = Phase::holding;
  client.tokens = reply.tokens;
  client.trust = std::max(client.trust, trust_from(reply.sent, setting));
}

Verb verb_of(Phase phase) {
  switch (phase) {
    case Phase::asking: return Verb::acquire;
    case Phase::claiming: return Verb::claim;
    case Phase::renewing: return Verb::renew;
    case Phase::converting: return Verb::convert;
    case Phase::releasing: return Verb::release;
    default: return Verb::cancel;
  }
}

}  // namespace

void ask(World& world, const Setting& setting, std::size_t client, std::size_t order) {
  ++world.clients[client].begun;
  world.clients[client].order = static_cast<std::uint8_t>(order);
  send(world, setting, client, Verb::acquire, Phase::asking);
}

void claim(World& world, const Setting& setting, std::size_t client) {
  send(world, setting, client, Verb::claim, Phase::claiming);
}

void ask_again(World& world, const Setting& setting, std::size_t client) {
  send(world, setting, client, Verb::acquire, Phase::asking);
}

void renew(World& world, const Setting& setting, std::size_t client) {
  send(world, setting, client, Verb::renew, Phase::renewing);
}

void convert(World& world, const Setting& setting, std::size_t client) {
  send(world, setting, client, Verb::convert, Phase::converting);
}

void release(World& world, const Setting& setting, std::size_t client) {
  // Belief ends before the request leaves: the store may give the name away at once.
  world.clients[client].trust = 0;
  world.clients[client].tokens = {};
  world.clients[client].converted = false;
  send(world, setting, client, Verb::release, Phase::releasing);
}

void retry(World& world, const Setting& setting, std::size_t client) {
  const Phase phase = world.clients[client].phase;
  send(world, setting, client, verb_of(phase), phase);
}

void give_up(World& world, const Setting& setting, std::size_t client) {
  ClientCell& cell = world.clients[client];
  switch (cell.phase) {
    case Phase::asking:
    case Phase::queued:
    case Phase::claiming: send(world, setting, client, Verb::cancel, Phase::cancelling); break;
    case Phase::converting: send(world, setting, client, Verb::cancel, Phase::unconverting); break;
    case Phase::renewing:
    case Phase::unconverting:
      stop_waiting(world, client);
      cell.phase = Phase::holding;
      break;
    default: go_idle(world, client);
  }
}

void crash(World& world, std::size_t client) { go_idle(world, client); }

void hear(World& world, const Setting& setting, std::size_t client) {
  ClientCell& cell = world.clients[client];
  const ReplyCell reply = cell.reply;
  stop_waiting(world, client);
  const bool granted = reply.outcome == Outcome::granted;
  const bool lost = reply.outcome == Outcome::lost;
  switch (cell.phase) {
    case Phase::asking:
    case Phase::claiming:
      if (granted) return hold(cell, reply, setting);
      if (reply.outcome != Outcome::queued) return go_idle(world, client);
      cell.phase = Phase::queued;
      return;
    case Phase::renewing:
    case Phase::converting:
      if (lost) return go_idle(world, client);
      if (granted && cell.phase == Phase::converting) cell.converted = true;
      if (granted) return hold(cell, reply, setting);
      cell.phase = Phase::holding;  // busy, queued or deadlock: it keeps the mode it has
      return;
    case Phase::unconverting: cell.phase = Phase::holding; return;
    default: go_idle(world, client);
  }
}

void advance_clock(World& world, const Setting& setting, std::size_t client, int ticks) {
  ClientCell& cell = world.clients[client];
  cell.trust = static_cast<std::int8_t>(std::max(0, cell.trust - ticks));
  if (cell.reply.there) cell.reply.sent = aged(cell.reply.sent, ticks, setting);
  for (MessageCell& message : world.messages) {
    if (client_of(message.grant) == client && message.current && can_grant(message.verb)) {
      message.sent = aged(message.sent, ticks, setting);
    }
  }
}

bool can_grant(Verb verb) {
  return verb == Verb::acquire || verb == Verb::claim || verb == Verb::renew ||
         verb == Verb::convert;
}

bool may_send(const World& world, const Setting& setting, std::size_t client) {
  return static_cast<std::size_t>(
             std::count_if(world.messages.begin(), world.messages.end(), [&](const MessageCell& m) {
               return client_of(m.grant) == client;
             })) < setting.in_flight;
}

bool waits_for_reply(Phase phase) {
  return phase != Phase::idle && phase != Phase::queued && phase != Phase::holding;
}

bool holds(Phase phase) {
  return phase == Phase::holding || phase == Phase::renewing || phase == Phase::converting ||
         phase == Phase::unconverting;
}

bool has_current_message(const World& world, std::size_t client) {
  return std::any_of(world.messages.begin(), world.messages.end(), [&](const MessageCell& m) {
    return client_of(m.grant) == client && m.current;
  });
}

Mode believed_mode(const ClientCell& client, const Target& target) {
  return client.converted ? Mode::X : target.mode;
}

}  // namespace baton::explore
