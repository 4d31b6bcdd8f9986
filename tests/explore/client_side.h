#pragma once

// What the clients of a world do: small state machines, like the real client but with every choice
// left open (whether to wait, to retry, to renew, to give up, to die).

#include "explore/world.h"

namespace baton::explore {

// Every function leaves the world to be normalised by the caller.

void ask(World& world, const Setting& setting, std::size_t client, std::size_t order);
void claim(World& world, const Setting& setting, std::size_t client);
void ask_again(World& world, const Setting& setting, std::size_t client);  // from the queue
void renew(World& world, const Setting& setting, std::size_t client);
void convert(World& world, const Setting& setting, std::size_t client);
void release(World& world, const Setting& setting, std::size_t client);

// Sends once more what it waits for, counting its time anew.
void retry(World& world, const Setting& setting, std::size_t client);

// Waits no longer: an acquire is cancelled, for its fate is unknown; the rest is left to its time.
void give_up(World& world, const Setting& setting, std::size_t client);

// Forgets everything and starts again. What it has sent may still arrive.
void crash(World& world, std::size_t client);

// Takes the reply that is on its way to it.
void hear(World& world, const Setting& setting, std::size_t client);

// The client's own clock moves on.
void advance_clock(World& world, const Setting& setting, std::size_t client, int ticks);

[[nodiscard]] bool can_grant(Verb verb);  // so that it matters when such a request was sent
[[nodiscard]] bool may_send(const World& world, const Setting& setting, std::size_t client);
[[nodiscard]] bool waits_for_reply(Phase phase);
[[nodiscard]] bool holds(Phase phase);  // believes, or would if its time were not over
[[nodiscard]] bool has_current_message(const World& world, std::size_t client);

// The mode in which a client believes to hold a name of its order.
[[nodiscard]] Mode believed_mode(const ClientCell& client, const Target& target);

}  // namespace baton::explore
