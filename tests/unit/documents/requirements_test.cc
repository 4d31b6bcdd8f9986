// docs/requirements.md says which test shows which requirement: every test that it names exists.

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/documents/tree.h"

namespace baton::test {
namespace {

// "Suite.test" of every test in the sources, and "group/Suite.test/name" of those that have values
// with names.
std::set<std::string> tests_in_sources() {
  const std::regex declared(R"re(\bTEST(_F|_P)?\(\s*(\w+),\s*(\w+)\s*\))re");
  const std::regex values(R"re(INSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+),)re");
  const std::regex row_name(R"re(Row\{\s*"(\w+)")re");
  std::set<std::string> tests;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = read_file(entry.path());
    std::map<std::string, std::vector<std::string>> of_suite;
    for (std::sregex_iterator it(text.begin(), text.end(), declared), end; it != end; ++it) {
      of_suite[(*it)[2]].push_back((*it)[3]);
      tests.insert((*it)[2].str() + "." + (*it)[3].str());
    }
    for (std::sregex_iterator it(text.begin(), text.end(), values), end; it != end; ++it) {
      const std::string rest = it->suffix().str();
      const std::string block = rest.substr(0, rest.find("});"));
      for (std::sregex_iterator row(block.begin(), block.end(), row_name); row != end; ++row) {
        for (const std::string& test : of_suite[(*it)[2]]) {
          tests.insert((*it)[1].str() + "/" + (*it)[2].str() + "." + test + "/" + (*row)[1].str());
        }
      }
    }
  }
  return tests;
}

struct Table {
  std::size_t rows = 0;
  std::vector<std::string> tests;
};

// The tables of the page, by their titles.
std::map<std::string, Table> tables_in_docs() {
  std::istringstream lines(read_file(kRoot / "docs/requirements.md"));
  const std::regex test_name(R"re(`([\w/]+\.[\w/]+)`)re");
  std::map<std::string, Table> tables;
  std::string title;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) title = line.substr(3);
    if (!line.starts_with("| ") || line.starts_with("| row ")) continue;
    Table& table = tables[title];
    ++table.rows;
    const auto before = table.tests.size();
    for (std::sregex_iterator it(line.begin(), line.end(), test_name), end; it != end; ++it) {
      table.tests.push_back((*it)[1]);
    }
    EXPECT_GT(table.tests.size(), before) << "no test is named: " << line;
  }
  return tables;
}

TEST(Requirements, are_each_shown_by_a_test_that_exists) {
  const auto tests = tests_in_sources();
  EXPECT_GT(tests.size(), 500U) << "the sources are not read as they should be";
  const std::map<std::string, std::size_t> expected_rows{
      {"Observers: metrics", 7},
      {"Observers: log lines", 9},
      {"Observers: dashboards", 11},
      {"Observers: alerts", 9},
      {"Observers: success criteria", 19},
      {"Leader election", 23},
      {"Documents: logs", 10},
      {"Documents: correlation ids", 8},
      {"Documents: reliability", 13},
      {"Documents: outbox, inbox and routing", 16},
      {"Documents: several instances", 6}};
  auto tables = tables_in_docs();
  for (const auto& [title, rows] : expected_rows) {
    EXPECT_EQ(tables[title].rows, rows) << title;
  }
  EXPECT_EQ(tables.size(), expected_rows.size());
  for (const auto& [title, table] : tables) {
    for (const std::string& test : table.tests) {
      EXPECT_TRUE(tests.contains(test)) << title << ": there is no test " << test;
    }
  }
}

}  // namespace
}  // namespace baton::test
