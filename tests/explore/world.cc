#include "explore/world.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>

namespace baton::explore {
namespace {

// A set of small numbers. Tokens and turns are: they start as ranks, and a step draws few new ones.
class SmallSet {
 public:
  void add(std::uint8_t value) {
    if (value >= 64) throw std::length_error("a token has outgrown the world");
    bits_ |= std::uint64_t{1} << value;
  }
  // How many of the set are above zero and at most `value`: its rank, if it is one of them.
  [[nodiscard]] std::uint8_t rank(std::uint8_t value) const {
    const std::uint64_t below = value >= 63 ? ~std::uint64_t{0} : (std::uint64_t{2} << value) - 1;
    return static_cast<std::uint8_t>(std::popcount(bits_ & below & ~std::uint64_t{1}));
  }
  [[nodiscard]] std::uint8_t size() const { return rank(63); }

 private:
  std::uint64_t bits_ = 0;
};

template <typename Visit>
void for_each_token(World& world, std::size_t name, Visit visit) {
  visit(world.names[name].top);
  for (HolderCell& holder : world.names[name].holders) visit(holder.token);
  for (ClientCell& client : world.clients) {
    visit(client.tokens[name]);
    visit(client.reply.tokens[name]);
  }
}

// Tokens are compared within a name only, and never with turns, so each kind has its own ranks.
// The counter is above all of them, unless the core is broken: then it keeps its place.
void rank_tokens_and_turns(World& world) {
  std::uint8_t most = 0;
  std::uint8_t place = 0;
  bool sound = true;
  for (std::size_t name = 0; name < kMaxNames; ++name) {
    SmallSet tokens;
    for_each_token(world, name, [&](std::uint8_t token) { tokens.add(token); });
    if (tokens.rank(world.last) < tokens.size()) {
      sound = false;
      place = tokens.rank(world.last);
    }
    for_each_token(world, name, [&](std::uint8_t& token) { token = tokens.rank(token); });
    most = std::max(most, tokens.size());
  }
  SmallSet turns;
  for (const NameCell& name : world.names) {
    for (const WaiterCell& waiter : name.waiters) turns.add(waiter.turn);
  }
  for (NameCell& name : world.names) {
    for (WaiterCell& waiter : name.waiters) waiter.turn = turns.rank(waiter.turn);
  }
  world.last = sound ? std::max(most, turns.size()) : place;
}

// Spreads every bit of `x` over all bits.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// The bytes of one cell, and in which list and place it stands.
template <typename Cell>
std::uint64_t hash_cell(const Cell& cell, std::uint64_t where) {
  std::array<std::uint64_t, (sizeof(Cell) + 7) / 8> words{};
  std::memcpy(words.data(), &cell, sizeof(Cell));
  std::uint64_t hash = where;
  for (const std::uint64_t word : words) hash = mix(hash ^ word);
  return hash;
}

// Everything in a world belongs to one client. What does is added up, so that it does not matter
// which client it is, nor in which order its things are listed; only queues have an order.
class ClientHashes {
 public:
  template <typename Cell>
  void add(Cell cell, std::uint64_t where) {
    const std::size_t client = client_of(cell.grant);
    cell.grant = static_cast<Grant>(cell.grant % 8U);
    sums_[client] += hash_cell(cell, where);
  }
  void add(std::size_t client, const ClientCell& cell) { sums_[client] += hash_cell(cell, 1); }
  void add_cancelled(Grant grant) { sums_[client_of(grant)] += mix(0x200U + grant % 8U); }

  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t total = 0;
    for (const std::uint64_t sum : sums_) total += mix(sum);
    return total;
  }

 private:
  std::array<std::uint64_t, kMaxClients> sums_{};
};

}  // namespace

void normalise(World& world) {
  world.cancelled.erase_if([&](Grant grant) {
    return std::none_of(world.messages.begin(), world.messages.end(),
                        [&](const MessageCell& m) { return m.grant == grant; });
  });
  rank_tokens_and_turns(world);
}

std::uint64_t fingerprint(const World& world) {
  ClientHashes hashes;
  std::uint64_t common = mix(world.last + 256U * world.faults);
  for (std::size_t i = 0; i < kMaxClients; ++i) hashes.add(i, world.clients[i]);
  for (const MessageCell& message : world.messages) hashes.add(message, 2);
  for (const Grant grant : world.cancelled) hashes.add_cancelled(grant);
  for (std::size_t i = 0; i < kMaxNames; ++i) {
    const NameCell& name = world.names[i];
    common = mix(common ^ name.top);
    for (const HolderCell& holder : name.holders) hashes.add(holder, 4 + i);
    for (const TombstoneCell& tombstone : name.tombstones) hashes.add(tombstone, 8 + i);
    std::uint64_t place = 16 + 64 * i;
    for (const WaiterCell& waiter : name.waiters) hashes.add(waiter, ++place);
  }
  return std::max<std::uint64_t>(1, common + hashes.total());
}

std::string to_string(Phase phase) {
  static constexpr const char* kNames[] = {"idle",      "asking",    "queued",     "claiming",
                                           "holding",   "renewing",  "converting", "unconverting",
                                           "releasing", "cancelling"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string grant_text(Grant grant) {
  return std::string(1, static_cast<char>('A' + client_of(grant))) + std::to_string(grant % 8U);
}

std::string describe(const World& world, const Setting& setting) {
  std::ostringstream out;
  for (std::size_t i = 0; i < setting.names.size(); ++i) {
    const NameCell& name = world.names[i];
    out << "      " << setting.names[i] << ':';
    for (const HolderCell& h : name.holders) {
      out << ' ' << grant_text(h.grant)
          << (h.state == core::HolderState::handed ? " may claim " : " holds ")
          << short_name(h.mode) << " #" << int{h.token} << " for " << int{h.left} << ';';
    }
    for (const WaiterCell& w : name.waiters) {
      out << ' ' << grant_text(w.grant) << (w.converting ? " converts to " : " waits for ")
          << short_name(w.mode) << " for " << int{w.left} << ';';
    }
    for (const TombstoneCell& t : name.tombstones) {
      out << ' ' << grant_text(t.grant) << " entombed for " << int{t.left} << ';';
    }
    out << '\n';
  }
  for (std::size_t i = 0; i < setting.clients; ++i) {
    const ClientCell& client = world.clients[i];
    out << "      client " << static_cast<char>('A' + i) << ": " << to_string(client.phase);
    if (client.trust > 0) out << ", believes for " << int{client.trust};
    if (client.reply.there) out << ", reply on its way: " << to_string(client.reply.outcome);
    for (const MessageCell& m : world.messages) {
      if (client_of(m.grant) != i) continue;
      out << ", sent " << to_string(m.verb) << ' ' << grant_text(m.grant);
      if (!m.current) out << " (given up)";
    }
    out << '\n';
  }
  return out.str();
}

}  // namespace baton::explore
