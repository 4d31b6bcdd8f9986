#pragma once

// What a store remembers, as plain values. apply.h is the only code that changes them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "baton/store.h"

namespace baton::core {

// An instant of the store's own clock, as microseconds since an epoch that only the store knows.
using StoreTime = std::chrono::microseconds;

// Limits for times and spans read from a store, so that adding them to other times cannot overflow:
// no request can ask for a longer span than a day, and no clock is off by more than 35,000 years.
inline constexpr Millis kLongestStoredSpan{std::int64_t{1} << 40};
inline constexpr StoreTime kFurthestStoredTime{std::int64_t{1} << 60};
[[nodiscard]] constexpr bool is_stored_span(Millis span) {
  return span >= Millis{0} && span <= kLongestStoredSpan;
}
[[nodiscard]] constexpr bool is_stored_time(StoreTime time) {
  return time >= -kFurthestStoredTime && time <= kFurthestStoredTime;
}

// The schema lives in the note of this name; the note's ordinal is the schema's version.
inline constexpr std::string_view kSchemaKey = "BATON:schema";

// The part that a holder and a waiter share.
struct Claimant {
  GrantId grant;
  Mode mode = Mode::X;
  Millis ttl{0};
  Millis at_least_for{0};
  std::optional<std::int64_t> if_ordinal_below;  // of a waiter: checked when it claims
  NoteChange change;                             // of a waiter: written when it claims
  std::string predicate;
  std::string owner;
  std::string channel;
  Metadata metadata;
  bool operator==(const Claimant&) const = default;
};

//   queued ──promoted──▶ handed ──claimed──▶ held ──released, at_least_for left──▶ parked
//                          └── not claimed by `expires`: gone     └── expired, released: gone
enum class HolderState : std::uint8_t { held, handed, parked };

struct Holder : Claimant {
  Token token = 0;
  HolderState state = HolderState::held;
  StoreTime since{0};
  StoreTime expires{0};
  bool revoked = false;
  std::string reason;
  bool operator==(const Holder&) const = default;
};

struct Waiter : Claimant {
  std::uint64_t turn = 0;  // its place: lower is earlier; the same in all queues of one request
  StoreTime stale{0};      // when it is removed, unless it is refreshed
  Millis claim_within{0};
  bool alone = true;  // of a single name, so it can be promoted. Others are woken and ask again
  bool converting = false;  // a holder that waits for a stronger mode: ahead of all others
  bool operator==(const Waiter&) const = default;
};

// An acquire of this grant must not take effect any more.
struct Tombstone {
  GrantId grant;
  StoreTime until{0};
  bool operator==(const Tombstone&) const = default;
};

struct NameState {
  std::vector<Holder> holders;
  std::vector<Waiter> waiters;  // conversions first, then by turn
  std::vector<Tombstone> tombstones;
  Note note;
  bool dirty = false;  // changed so that it must be written; merely dropping expired entries is not

  [[nodiscard]] bool empty() const {
    return holders.empty() && waiters.empty() && tombstones.empty() && note == Note{};
  }
};

// A wake-up to send: for this grant, to the channel of its process.
struct Wake {
  std::string channel;
  GrantId grant;
  bool operator==(const Wake&) const = default;
};

// The work of a store after a step, besides writing the state.
struct Effects {
  std::vector<Wake> wakes;
  bool durable = false;  // something was granted, renewed or noted: must survive a crash
};

struct LockTable {
  std::unordered_map<std::string, NameState> names;
  std::uint64_t last = 0;  // tokens and turns come from one counter, so both only ever grow

  std::uint64_t next() { return ++last; }
};

[[nodiscard]] std::int64_t schema_version(const LockTable& table);

}  // namespace baton::core
