// Linked with one source of the core, or of the clients, that has a flaw put in: the exploration
// must find it.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "explore/explorer.h"
#include "explore/fences.h"

namespace baton::explore {
namespace {

// A little of every world, then more: a flaw shows early in one of them, and which one is not for
// the mutant to say.
Report first_finding() {
  if (Report report = explore_fences(); !report.problem.empty()) return report;
  for (const std::size_t most : {20'000, 200'000, 1'000'000, 5'000'000}) {
    for (Setting setting : all_settings()) {
      setting.max_states = most;
      setting.live_every = 1;
      Report report = explore(setting);
      if (!report.problem.empty()) return report;
    }
  }
  return {};
}

TEST(Mutant, is_killed_by_the_exploration) {
  const char* name = std::getenv("BATON_MUTANT");
  const char* rows = std::getenv("BATON_MUTANT_ROWS");
  ASSERT_TRUE(name != nullptr && rows != nullptr) << "run by ctest, which says which mutant it is";
  const std::string row_file = std::string(rows) + "/" + name + ".row";
  std::remove(row_file.c_str());
  const Report report = first_finding();
  ASSERT_NE(report.problem, "") << name << " survived: no promise was seen broken";
  std::ostringstream row;
  row << std::left << std::setw(32) << name << " killed after " << std::right << std::setw(7)
      << report.states << " states at depth " << std::setw(2) << report.depth << ": "
      << report.problem << '\n';
  std::cout << row.str() << report.trace;
  std::ofstream(row_file) << row.str();
}

}  // namespace
}  // namespace baton::explore
