// CONTRIBUTING.md says what each folder is for, and leaves none out.

#include <regex>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "unit/documents/tree.h"

namespace baton::test {
namespace {

TEST(Contributing, has_the_folders_of_each_layer_and_no_layer_is_gone) {
  const std::string text = read_file(kRoot / "CONTRIBUTING.md");
  std::istringstream lines(read_file(kRoot / "cmake/layers.txt"));
  std::size_t layers = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::string folder = line.substr(0, line.find(':'));
    ++layers;
    EXPECT_TRUE(fs::is_directory(kRoot / folder)) << folder;
    const bool store = folder.starts_with("src/store/");
    const std::string row = store ? "src/store/*" : folder;
    EXPECT_NE(text.find("\n| `" + row + "/` |"), std::string::npos) << row;
  }
  EXPECT_GT(layers, 20U);
}

TEST(Contributing, leaves_no_folder_out_and_names_none_that_is_gone) {
  const std::string text = read_file(kRoot / "CONTRIBUTING.md");
  for (const char* above : {"src", "apps"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / above)) {
      const std::string row = std::string("| `") + above + "/" + entry.path().filename().string();
      EXPECT_NE(text.find(row + "/"), std::string::npos) << row;
    }
  }
  const std::regex first(R"re(\n\| `([\w/]+)/)re");
  std::size_t rows = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), first), end; it != end; ++it, ++rows) {
    EXPECT_TRUE(fs::is_directory(kRoot / (*it)[1].str())) << (*it)[1];
  }
  EXPECT_GT(rows, 20U);
  const auto begin = text.find("\n| `tests/`");
  const std::string tests = text.substr(begin, text.find('\n', begin + 1) - begin);
  for (const auto& entry : fs::directory_iterator(kRoot / "tests")) {
    EXPECT_NE(tests.find("`" + entry.path().filename().string() + "`"), std::string::npos)
        << entry.path();
  }
}

}  // namespace
}  // namespace baton::test
