#include "explore/steps.h"

#include <algorithm>
#include <sstream>

#include "explore/checks.h"
#include "explore/client_side.h"

namespace baton::explore {
namespace {

constexpr unsigned clock_of(std::uint8_t clocks, std::size_t client) {
  return (clocks >> (2 * client)) & 3U;
}

constexpr std::uint8_t with_clock(std::uint8_t clocks, std::size_t client, unsigned ticks) {
  return static_cast<std::uint8_t>(clocks | (ticks << (2 * client)));
}

// All clocks move by one.
constexpr std::uint8_t kEvenly = 0b010101;

template <typename Cell>
void age(Cell& cells) {
  for (auto& cell : cells) cell.left = static_cast<std::int8_t>(std::max(0, cell.left - 1));
}

const char* word(StepKind kind) {
  static constexpr const char* kWords[] = {"asks for",       "claims its turn",   "asks again",
                                           "renews",         "converts to X",     "releases",
                                           "sends again",    "gives up",          "crashes",
                                           "hears",          "never hears",       "the store gets",
                                           "the store gets", "the network loses", "time passes"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace

bool is_fault(StepKind kind) {
  return kind == StepKind::crash || kind == StepKind::lose_reply ||
         kind == StepKind::deliver_and_keep || kind == StepKind::lose_request;
}

World Machine::first() const {
  World world;
  if (setting_.slip_every > 0) {
    for (std::size_t i = 0; i < setting_.clients; ++i) {
      world.clients[i].steady = static_cast<std::uint8_t>(setting_.slip_every - 1);
    }
  }
  return world;
}

void Machine::possible(const World& world, std::vector<Step>& steps) const {
  steps.clear();
  for (std::size_t i = 0; i < setting_.clients; ++i) possible_for(world, i, steps);
  for (std::size_t i = 0; i < world.messages.size(); ++i) {
    const auto place = static_cast<std::uint8_t>(i);
    steps.push_back({StepKind::deliver, place});
    if (!may_fail(world)) continue;
    if (!world.messages[i].duplicated) steps.push_back({StepKind::deliver_and_keep, place});
    steps.push_back({StepKind::lose_request, place});
  }
  possible_ticks(world, steps);
}

void Machine::possible_for(const World& world, std::size_t client, std::vector<Step>& steps) const {
  const ClientCell& cell = world.clients[client];
  const auto may = [&](StepKind kind, std::size_t detail = 0) {
    steps.push_back({kind, static_cast<std::uint8_t>(client), static_cast<std::uint8_t>(detail)});
  };
  const bool may_send = explore::may_send(world, setting_, client);
  if (cell.phase != Phase::idle && may_fail(world)) may(StepKind::crash);
  if (cell.reply.there) {
    may(StepKind::hear);
    if (may_fail(world)) may(StepKind::lose_reply);
  }
  if (waits_for_reply(cell.phase)) {
    const bool cancels = cell.phase == Phase::asking || cell.phase == Phase::claiming ||
                         cell.phase == Phase::converting;
    if (may_send || !cancels) may(StepKind::give_up);
    // A retry beside the request that it repeats is what duplication does already.
    if (may_send && !has_current_message(world, client)) may(StepKind::retry);
    return;
  }
  if (!may_send) return;
  if (cell.phase == Phase::idle && cell.begun < setting_.acquisitions) {
    for (std::size_t i = 0; i < setting_.orders.size(); ++i) may(StepKind::ask, i);
  }
  if (cell.phase == Phase::queued) {
    may(StepKind::claim);
    may(StepKind::ask_again);
    may(StepKind::give_up);
  }
  if (cell.phase == Phase::holding) {
    may(StepKind::renew);
    may(StepKind::release);
    if (setting_.may_convert && !cell.converted) may(StepKind::convert);
  }
}

void Machine::possible_ticks(const World& world, std::vector<Step>& steps) const {
  // Grows the choices client by client: each one so far, with every way its clock may move.
  const std::size_t first = steps.size();
  steps.push_back({StepKind::tick, 0, 0});
  for (std::size_t i = 0; i < setting_.clients; ++i) {
    const bool may_slip =
        setting_.slip_every > 0 && world.clients[i].steady + 1 >= setting_.slip_every;
    const std::size_t end = steps.size();
    for (std::size_t k = first; k < end; ++k) {
      const std::uint8_t clocks = steps[k].detail;
      if (may_slip) {
        steps.push_back({StepKind::tick, 0, with_clock(clocks, i, 0)});
        steps.push_back({StepKind::tick, 0, with_clock(clocks, i, 2)});
      }
      steps[k].detail = with_clock(clocks, i, 1);
    }
  }
}

bool Machine::may_fail(const World& world) const {
  return setting_.faults == kAny || world.faults < setting_.faults;
}

std::string Machine::perform(World& world, Step step) {
  std::string problem;
  if (setting_.faults != kAny && is_fault(step.kind)) ++world.faults;
  switch (step.kind) {
    case StepKind::deliver: problem = deliver(world, step.subject, false); break;
    case StepKind::deliver_and_keep: problem = deliver(world, step.subject, true); break;
    case StepKind::lose_request: world.messages.erase(step.subject); break;
    case StepKind::tick: tick(world, step.detail); break;
    default: act(world, step);
  }
  if (problem.empty()) problem = broken_in_state(world, setting_);
  normalise(world);
  return problem;
}

void Machine::act(World& world, Step step) const {
  const std::size_t client = step.subject;
  switch (step.kind) {
    case StepKind::ask: return ask(world, setting_, client, step.detail);
    case StepKind::claim: return claim(world, setting_, client);
    case StepKind::ask_again: return ask_again(world, setting_, client);
    case StepKind::renew: return renew(world, setting_, client);
    case StepKind::convert: return convert(world, setting_, client);
    case StepKind::release: return release(world, setting_, client);
    case StepKind::retry: return retry(world, setting_, client);
    case StepKind::give_up: return give_up(world, setting_, client);
    case StepKind::crash: return crash(world, client);
    case StepKind::hear: return hear(world, setting_, client);
    case StepKind::lose_reply: world.clients[client].reply = {}; return;
    default: return;
  }
}

std::string Machine::deliver(World& world, std::size_t place, bool keep) {
  const MessageCell message = world.messages[place];
  const World before = world;
  if (keep) {
    world.messages[place].duplicated = true;
  } else {
    world.messages.erase(place);
  }
  const Reply reply = store_.answer(world, message);
  if (reply.outcome == Outcome::invalid) return "the core refuses: " + reply.message;
  if (message.verb == Verb::cancel && !message.converting &&
      std::find(world.cancelled.begin(), world.cancelled.end(), message.grant) ==
          world.cancelled.end()) {
    world.cancelled.push_back(message.grant);
  }
  ReplyCell& slot = world.clients[client_of(message.grant)].reply;
  if (message.current && !slot.there) {
    slot.there = true;
    slot.outcome = reply.outcome;
    const auto& targets = setting_.orders[message.order].targets;
    for (std::size_t i = 0; i < reply.tokens.size(); ++i) {
      slot.tokens[name_index(setting_, targets[i].key)] =
          static_cast<std::uint8_t>(reply.tokens[i]);
    }
    if (reply.outcome == Outcome::granted) slot.sent = message.sent;
  }
  return broken_by_answer(before, world, message, store_.effects(), setting_);
}

void Machine::tick(World& world, std::uint8_t clocks) const {
  for (NameCell& name : world.names) {
    age(name.holders);
    age(name.waiters);
    age(name.tombstones);
  }
  for (MessageCell& message : world.messages) --message.life;
  world.messages.erase_if([](const MessageCell& m) { return m.life <= 0; });
  for (std::size_t i = 0; i < setting_.clients; ++i) {
    const unsigned ticks = clock_of(clocks, i);
    advance_clock(world, setting_, i, static_cast<int>(ticks));
    if (setting_.slip_every == 0) continue;
    std::uint8_t& steady = world.clients[i].steady;
    steady = ticks != 1 ? std::uint8_t{0}
                        : static_cast<std::uint8_t>(std::min(steady + 1, setting_.slip_every - 1));
  }
}

std::string Machine::take(World& world, Step step, std::vector<Step>& taken) {
  taken.push_back(step);
  return perform(world, step);
}

std::string Machine::hear_all(World& world, std::vector<Step>& taken) {
  for (std::size_t i = 0; i < setting_.clients; ++i) {
    if (!world.clients[i].reply.there) continue;
    auto problem = take(world, {StepKind::hear, static_cast<std::uint8_t>(i)}, taken);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string Machine::deliver_all(World& world, std::vector<Step>& taken) {
  auto problem = hear_all(world, taken);
  while (problem.empty() && !world.messages.empty()) {
    const auto* oldest = std::min_element(
        world.messages.begin(), world.messages.end(),
        [](const MessageCell& a, const MessageCell& b) { return a.life < b.life; });
    const auto place = static_cast<std::uint8_t>(oldest - world.messages.begin());
    problem = take(world, {StepKind::deliver, place}, taken);
    if (problem.empty()) problem = hear_all(world, taken);
  }
  return problem;
}

std::string Machine::act_fairly(World& world, std::vector<Step>& taken) {
  for (std::size_t i = 0; i < setting_.clients; ++i) {
    const Phase phase = world.clients[i].phase;
    if (phase == Phase::idle) continue;
    const StepKind kind = phase == Phase::queued    ? StepKind::claim
                          : phase == Phase::holding ? StepKind::release
                                                    : StepKind::retry;
    auto problem = take(world, {kind, static_cast<std::uint8_t>(i)}, taken);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string Machine::be_fair(World& world, std::vector<Step>& taken) {
  const auto phases = [&] {
    std::array<Phase, kMaxClients> all{};
    for (std::size_t i = 0; i < kMaxClients; ++i) all[i] = world.clients[i].phase;
    return all;
  };
  // Promotions of one round are claimed in the next, before any time passes.
  for (bool changed = true; changed;) {
    const auto before = phases();
    if (auto problem = deliver_all(world, taken); !problem.empty()) return problem;
    if (auto problem = act_fairly(world, taken); !problem.empty()) return problem;
    if (auto problem = deliver_all(world, taken); !problem.empty()) return problem;
    changed = phases() != before;
  }
  return take(world, {StepKind::tick, 0, kEvenly}, taken);
}

bool Machine::at_rest(const World& world) {
  return world.messages.empty() &&
         std::all_of(world.clients.begin(), world.clients.end(),
                     [](const ClientCell& client) { return client.phase == Phase::idle; }) &&
         store_.forgettable(world);
}

std::string Machine::describe(const World& world, Step step) const {
  std::ostringstream out;
  const char client = static_cast<char>('A' + step.subject);
  switch (step.kind) {
    case StepKind::deliver:
    case StepKind::deliver_and_keep:
    case StepKind::lose_request: {
      const MessageCell& message = world.messages[step.subject];
      out << word(step.kind) << ' ' << to_string(message.verb) << ' ' << grant_text(message.grant);
      if (step.kind == StepKind::deliver_and_keep) out << ", which will come once more";
      break;
    }
    case StepKind::tick:
      out << word(step.kind);
      for (std::size_t i = 0; i < setting_.clients; ++i) {
        const unsigned ticks = clock_of(step.detail, i);
        if (ticks != 1)
          out << ", the clock of " << static_cast<char>('A' + i) << " moves by " << ticks;
      }
      break;
    case StepKind::ask:
      out << client << ' ' << word(step.kind);
      for (const Target& target : setting_.orders[step.detail].targets) {
        out << ' ' << short_name(target.mode) << " of " << target.key;
      }
      if (setting_.orders[step.detail].wait) out << ", waiting";
      break;
    case StepKind::hear:
    case StepKind::lose_reply:
      out << client << ' ' << word(step.kind) << ' '
          << to_string(world.clients[step.subject].reply.outcome);
      break;
    default: out << client << ' ' << word(step.kind);
  }
  return out.str();
}

}  // namespace baton::explore
