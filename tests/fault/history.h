#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "baton/store.h"

namespace baton::test {

struct Event {
  char kind = 0;  // as contender.cc and fault.h write them
  std::int64_t at = 0;
  Token token = 0;
  std::string who{};
};

struct Verdict {
  std::vector<std::string> problems;
  std::size_t grants = 0;
  std::size_t writes = 0;
  std::size_t refused = 0;
  std::size_t orphans = 0;   // grants whose holder was killed or paused
  Millis longest_orphan{0};  // how long one kept somebody waiting
};

// What an orphan may last beyond its TTL. Who waits asks again every second, so two would do on a
// machine that has nothing else to do; the rest is for one where 64 processes share two cores. It
// is still far from what a forgotten orphan takes, which is for ever.
inline constexpr Millis kSlack{10'000};

// Reads every history in the folder and judges the run:
// - no token is granted twice, and none is lower than one that had been granted before it was asked
//   for. A process that asked earlier may record its grant later, whatever the modes;
// - nobody believed to hold the lock after a higher token had been granted;
// - what was written, in the order in which it was committed, has strictly increasing tokens;
// - no orphan outlives its TTL: once a holder has let go, or was killed or paused, nobody waits for
//   longer than that and kSlack for the next grant, but for the time in which the server was away.
Verdict judge(const std::filesystem::path& histories, const std::filesystem::path& data,
              Millis ttl);

// The same for events given by hand: what the checker itself is tested with.
Verdict judge(std::vector<Event> events, const std::vector<Token>& written, Millis ttl = Millis{0});

}  // namespace baton::test
