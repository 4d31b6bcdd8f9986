#pragma once

// What the program documents_flawed does wrong, and where it dies (flaws/): BATON_TEST_FLAW names a
// flaw, BATON_TEST_DIE_AT a service and a place, as validation:after_the_commit. The process that
// removes the file BATON_TEST_DIE dies there, so that one does, once.

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

namespace baton::test {

inline bool flawed(std::string_view name) {
  const char* flaw = std::getenv("BATON_TEST_FLAW");
  return flaw != nullptr && flaw == name;
}

inline void die_at(const std::string& place) {
  const char* where = std::getenv("BATON_TEST_DIE_AT");
  const char* file = std::getenv("BATON_TEST_DIE");
  if (where == nullptr || file == nullptr) return;
  std::ifstream words("/proc/self/cmdline");
  std::string program, service;
  std::getline(words, program, '\0');
  std::getline(words, service, '\0');
  if (where == service + ":" + place && ::unlink(file) == 0) (void)::raise(SIGKILL);
}

}  // namespace baton::test
