#include "explore/store_side.h"

#include <algorithm>

namespace baton::explore {
namespace {

constexpr core::StoreTime kNow = std::chrono::hours(1);
constexpr std::uint64_t kGrantHigh = 0xBA70;

core::StoreTime in_ticks(std::int8_t ticks) { return kNow + ticks * core::StoreTime(kTick); }

// A time that never comes must stay visible as one: it is capped far above every honest value.
std::int8_t ticks_until(core::StoreTime time) {
  const auto ticks =
      (time - kNow + core::StoreTime(kTick) - core::StoreTime(1)) / core::StoreTime(kTick);
  return static_cast<std::int8_t>(std::clamp<std::int64_t>(ticks, 0, 100));
}

GrantId grant_id(Grant grant) { return {kGrantHigh, grant + std::uint64_t{1}}; }
Grant cell_grant(GrantId id) { return static_cast<Grant>(id.low - 1); }

}  // namespace

StoreSide::StoreSide(const Setting& setting) : setting_(setting) {}

void StoreSide::load(const World& world) {
  effects_ = {};
  for (std::size_t i = 0; i < setting_.names.size(); ++i) {
    const NameCell& cell = world.names[i];
    core::NameState& state = table_.names[setting_.names[i]];
    state.holders.clear();
    for (const HolderCell& from : cell.holders) {
      core::Holder& holder = state.holders.emplace_back();
      holder.grant = grant_id(from.grant);
      holder.mode = from.mode;
      holder.ttl = setting_.ttl_time();
      holder.token = from.token;
      holder.state = from.state;
      holder.since = kNow;
      holder.expires = in_ticks(from.left);
    }
    state.waiters.clear();
    for (const WaiterCell& from : cell.waiters) {
      core::Waiter& waiter = state.waiters.emplace_back();
      waiter.grant = grant_id(from.grant);
      waiter.mode = from.mode;
      waiter.ttl = setting_.ttl_time();
      waiter.turn = from.turn;
      waiter.stale = in_ticks(from.left);
      waiter.claim_within = setting_.claim_within * kTick;
      waiter.alone = from.alone;
      waiter.converting = from.converting;
    }
    state.tombstones.clear();
    for (const TombstoneCell& from : cell.tombstones) {
      state.tombstones.push_back({grant_id(from.grant), in_ticks(from.left)});
    }
    state.dirty = false;
  }
  table_.last = world.last;
}

void StoreSide::save(World& world) const {
  for (std::size_t i = 0; i < setting_.names.size(); ++i) {
    NameCell& cell = world.names[i];
    const core::NameState& state = table_.names.at(setting_.names[i]);
    cell.holders.clear();
    for (const core::Holder& from : state.holders) {
      cell.holders.push_back({cell_grant(from.grant), from.mode, from.state,
                              static_cast<std::uint8_t>(from.token), ticks_until(from.expires)});
    }
    cell.waiters.clear();
    for (const core::Waiter& from : state.waiters) {
      cell.waiters.push_back({cell_grant(from.grant), from.mode,
                              static_cast<std::uint8_t>(from.turn), ticks_until(from.stale),
                              from.alone, from.converting});
    }
    cell.tombstones.clear();
    for (const core::Tombstone& from : state.tombstones) {
      cell.tombstones.push_back({cell_grant(from.grant), ticks_until(from.until)});
    }
  }
  world.last = static_cast<std::uint8_t>(table_.last);
}

Request StoreSide::request_for(const MessageCell& message) const {
  const Order& order = setting_.orders[message.order];
  Request request;
  request.verb = message.verb;
  request.grant = grant_id(message.grant);
  request.targets = order.targets;
  request.converting = message.converting;
  const Millis queue_ttl = order.wait ? setting_.queue_ttl * kTick : Millis{0};
  switch (message.verb) {
    case Verb::acquire:
      request.ttl = setting_.ttl_time();
      request.claim_within = setting_.claim_within * kTick;
      request.queue_ttl = queue_ttl;
      break;
    case Verb::claim: request.queue_ttl = queue_ttl; break;
    case Verb::convert:
      request.queue_ttl = queue_ttl;
      for (Target& target : request.targets) target.mode = Mode::X;
      break;
    case Verb::cancel: request.tombstone_ttl = setting_.life * kTick; break;
    default: break;
  }
  return request;
}

Reply StoreSide::answer(World& world, const MessageCell& message) {
  load(world);
  Reply reply = core::apply(table_, request_for(message), kNow, effects_);
  save(world);
  return reply;
}

bool StoreSide::forgettable(const World& world) {
  load(world);
  return std::all_of(table_.names.begin(), table_.names.end(),
                     [](const auto& entry) { return core::forgettable(entry.second, kNow); });
}

}  // namespace baton::explore
