// Linked with one source of the core, of the clients, of the partitions or of the relay that has a
// flaw put in: the exploration must find it. Where the flaw is in how a class is used, as in the
// SQL around it, the source is that of the explored world.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "explore/mutant.h"

namespace baton::explore {
namespace {

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
