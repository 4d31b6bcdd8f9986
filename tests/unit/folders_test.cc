// CONTRIBUTING.md says what each folder may include, as `./dev check` sees it, and leaves none out.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace baton::test {
namespace {

namespace fs = std::filesystem;

using Includes = std::map<std::string, std::set<std::string>>;

const fs::path kRoot = BATON_SOURCE_DIR;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The cases of may_include, without those that only repeat another.
Includes in_dev() {
  const std::string text = read_file(kRoot / "dev");
  const auto begin = text.find("\nmay_include()");
  const std::string cases = text.substr(begin, text.find("\n}", begin) - begin);
  const std::regex one(R"re(\n    ([\w/*]+)(?: \| [^)]+)?\)\s+echo ([^;]+?)\s*;;)re");
  Includes found;
  for (std::sregex_iterator it(cases.begin(), cases.end(), one), end; it != end; ++it) {
    auto& allowed = found[(*it)[1]];
    std::istringstream words((*it)[2].str());
    for (std::string word; words >> word;) {
      if (word != "\"$1\"" && word != (*it)[1]) allowed.insert(word);
    }
  }
  return found;
}

// The rows of the table that are about src/ and apps/.
Includes in_contributing() {
  std::istringstream lines(read_file(kRoot / "CONTRIBUTING.md"));
  const std::regex row(R"re(\| `(?:src/)?([^`]+)/` \| .* \| ([^|]+) \|)re");
  const std::regex folder("`([^`]+)/`");
  Includes found;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    const bool checked = line.starts_with("| `src/") || line.starts_with("| `apps/");
    if (!checked || !std::regex_match(line, match, row)) continue;
    const std::string allowed = match[2];
    auto& into = found[match[1]];
    if (allowed == "anything") into.insert("'*'");
    for (std::sregex_iterator it(allowed.begin(), allowed.end(), folder), end; it != end; ++it) {
      into.insert((*it)[1]);
    }
  }
  return found;
}

TEST(Contributing, says_what_each_folder_may_include_as_it_is_checked) {
  const Includes checked = in_dev();
  EXPECT_GT(checked.size(), 15U);
  EXPECT_EQ(in_contributing(), checked);
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
