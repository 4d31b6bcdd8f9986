#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "baton/store.h"

namespace baton::test {

struct Event {
  char kind = 0;  // as contender.cc writes them
  std::int64_t at = 0;
  Token token = 0;
};

struct Verdict {
  std::vector<std::string> problems;
  std::size_t grants = 0;
  std::size_t writes = 0;
  std::size_t refused = 0;
};

// Reads every history in the folder and judges the run: no token is granted twice; nobody believed
// to hold the lock after a higher token had been granted; and what was written, in the order in
// which it was committed, has strictly increasing tokens.
Verdict judge(const std::filesystem::path& histories, const std::filesystem::path& data);

// The same for events given by hand: what the checker itself is tested with.
Verdict judge(std::vector<Event> events, const std::vector<Token>& written);

}  // namespace baton::test
