// The README prints a program that exists, and wraps its prose.

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "integration/docs/docs_page.h"

namespace baton::test {
namespace {

TEST(Readme, prints_the_program_and_the_cmake_file_of_the_example) {
  const std::string readme = page("../README.md");
  ASSERT_FALSE(readme.empty());
  EXPECT_EQ(blocks(readme, "cpp"), std::vector{page("../examples/report/main.cc")});
  EXPECT_EQ(blocks(readme, "cmake"), std::vector{page("../examples/report/CMakeLists.txt")});
}

TEST(Readme, names_a_store_before_it_locks) {
  const std::string readme = page("../README.md");
  const auto store = readme.find("export BATON_STORE=postgres://");
  ASSERT_NE(store, std::string::npos);
  EXPECT_LT(store, readme.find("$ baton run "));
}

TEST(Readme, wraps_at_a_hundred_columns) {
  std::istringstream lines(page("../README.md"));
  for (std::string line; std::getline(lines, line);) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
    });
    if (line.starts_with("|")) continue;
    EXPECT_LE(columns, 100) << line;
  }
}

}  // namespace
}  // namespace baton::test
