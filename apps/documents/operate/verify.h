#pragma once

// documents verify: whether the five databases agree. It shares no code with the services but the
// format of the audit chain, and says again what they should have done (judge.cc).

#include <map>
#include <string>
#include <vector>

#include "apps/documents/operate/world.h"

namespace baton::documents {

struct Verdict {
  std::map<std::string, std::int64_t> by_status;  // documents
  std::vector<std::string> wrong;                 // one line each; empty: all is well
  std::vector<std::string> unfinished;            // what may still come right by itself
  std::vector<World::Trouble> dead;               // the dead letters
  std::int64_t events = 0, sealed = 0, notifications = 0;
  [[nodiscard]] bool well() const { return wrong.empty() && unfinished.empty(); }
};

struct VerifyOptions {
  bool redriven = false;  // dead letters were redriven: a document may have failed more than once
};

[[nodiscard]] Verdict judge(const World& world, const VerifyOptions& options = {});

// Looks until nothing is unfinished, for `wait` at most; then prints. Exit code 0: all is well.
[[nodiscard]] Result<int> verify(const Places& places, Millis wait, bool json,
                                 const VerifyOptions& options = {});

}  // namespace baton::documents
