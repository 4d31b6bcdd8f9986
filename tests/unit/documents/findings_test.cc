// The findings of `baton store doctor` that docs/cli.md lists are those in the sources, and each
// has a test for each store that can have it.

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "unit/documents/tree.h"

namespace baton::test {
namespace {

using Codes = std::set<std::string>;

void collect(const std::string& text, const char* pattern, const std::string& prefix,
             Codes& codes) {
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    codes.insert(prefix + (*it)[1].str());
  }
}

// Of the sources below one folder.
Codes codes_in(const fs::path& folder) {
  Codes codes;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = read_file(entry.path());
    if (text.find("Finding") == std::string::npos) continue;
    collect(text, R"re(\badd\(\s*"([a-z-]+)",[^"]*Severity::)re", "", codes);
    collect(text, R"re(\.code = "([a-z-]+)")re", "", codes);
    collect(text, R"re(\b(schema|slow|clock)_finding\()re", "", codes);
    if (text.find("damaged_finding(") != std::string::npos) codes.insert("damaged-value");
    if (text.find(R"(std::string("rbac-") + right.verb)") != std::string::npos) {
      collect(text, R"re(\{"([a-z]+)", Severity::)re", "rbac-", codes);
    }
  }
  return codes;
}

Codes codes_in_docs() {
  const std::string text = read_file(kRoot / "docs/cli.md");
  const auto begin = text.find("### What the doctor finds");
  if (begin == std::string::npos) return {};
  Codes codes;
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin) - begin));
  const std::regex row(R"(\|[^|]*\|([^|]*)\|.*)");
  std::smatch cells;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, cells, row)) collect(cells[1].str(), "`([a-z-]+)`", "", codes);
  }
  return codes;
}

TEST(Findings, are_all_in_the_manual_and_the_manual_lists_no_others) {
  const Codes sources = codes_in(kRoot / "src/store");
  EXPECT_GT(sources.size(), 30U) << "the sources are not read as they should be";
  EXPECT_EQ(sources, codes_in_docs());
}

TEST(Findings, each_is_named_by_the_tests_of_each_store_that_can_have_it) {
  const std::map<std::string, std::string> tests = {
      {"etcd", "etcd/etcd_examine_test.cc"},
      {"kubernetes", "kubernetes/kubernetes_access_test.cc"},
      {"postgres", "postgres/postgres_examine_test.cc"},
      {"postgres_advisory", "postgres/postgres_examine_test.cc"},
      {"redis", "redis/redis_examine_test.cc"},
      {"sqlite", "sqlite/sqlite_examine_test.cc"}};
  Codes tested;
  for (const auto& [store, file] : tests) {
    // The conformance suite tests each store that keeps documents.
    const std::string text = read_file(kRoot / "tests/integration" / file) +
                             read_file(kRoot / "tests/conformance/damage_test.cc");
    for (const std::string& code : codes_in(kRoot / "src/store" / store)) {
      EXPECT_NE(text.find('"' + code + '"'), std::string::npos) << code << " in " << file;
      tested.insert(code);
    }
  }
  EXPECT_EQ(tested, codes_in(kRoot / "src/store")) << "a store is missing here";
}

}  // namespace
}  // namespace baton::test
