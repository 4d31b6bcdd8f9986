#pragma once

// Which partitions a member takes, waits for and lets go of: a pure function of what it sees. No
// I/O, no threads, no clock; tests/explore/partitions_world.h runs it in every order of events.
//
//   quota     of the member at rank r of n: count / n, plus one if r < count mod n
//   take      free partitions, at once while below the quota; above it only those that have been
//             free for kFreeForAnyone
//   wait for  partitions of a holder that is above its own quota, as many as are missing
//   hand over partitions that a member waits for, while above the quota
//
// A holder lets go only of what is asked for, and asks are made only while a member is below its
// quota, so every hand-over brings the set closer to its quotas, and then nothing moves any more.
// (Giving partition i to member i mod n instead moves almost all of them with every change, and
// never comes to rest beside a member that does not act.)

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/clock.h"
#include "baton/export.h"
#include "baton/store.h"

namespace baton::partitions {

// From here on a free partition is taken by a member that has its quota: the one that should take
// it may be stuck, or may not have seen yet that it should.
inline constexpr Millis kFreeForAnyone{1'000};

// What this member does about a partition.
enum class Own : std::uint8_t {
  none,
  taking,    // has asked for it without waiting; no answer yet
  waiting,   // is in its queue, or on the way there
  holding,   // its work runs here
  draining,  // its work has been told to end; it is released then
};

struct Seen {
  std::string holder;  // empty: free
  Token token = 0;     // of the holder: the later it came, the higher
  std::vector<std::string> waiters;
  Millis free_for{0};  // as far as this member knows
  Own own = Own::none;
};

struct View {
  std::string self;
  std::vector<std::string> members;  // the live ones, in any order
  std::vector<Seen> partitions;
  bool may_take = true;  // false: only holds and hands over
};

struct HandOver {
  std::size_t partition = 0;
  std::string to;
  bool operator==(const HandOver&) const = default;
};

struct Plan {
  std::vector<std::size_t> take;
  std::vector<std::size_t> wait_for;
  std::vector<std::size_t> withdraw;  // waits that lead nowhere or are no longer needed
  std::vector<HandOver> hand_over;
  std::optional<Millis> look_again_in;  // when the next free partition is free for anyone
};

[[nodiscard]] BATON_EXPORT std::size_t quota(std::size_t rank, std::size_t members,
                                             std::size_t count);

[[nodiscard]] BATON_EXPORT Plan decide(const View& view);

}  // namespace baton::partitions
