// The files that our pages name and link to exist, so that a file that is renamed or goes takes its
// mentions with it.

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/documents/tree.h"

namespace baton::test {
namespace {

// What users write themselves, or the build.
const std::set<std::string> kNotInTheTree{"baton.yaml", "report.sql", "shop.yaml",
                                          "apps/warehouse/types/returns.cc",
                                          "share/doc/baton/baton.spdx.json"};

std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  for (const char* page :
       {"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/README.md"}) {
    found.emplace_back(page);
  }
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(fs::relative(entry.path(), kRoot));
  }
  return found;
}

// Every file below the folders that have sources, as "tests/fault/fault.h".
const std::set<std::string>& files() {
  static const std::set<std::string> all = [] {
    std::set<std::string> found;
    for (const char* folder : {"apps", "bench", "cmake", "deploy", "docs", "examples", "fuzz",
                               "python", "include", "scripts", "src", "tests"}) {
      for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
        if (entry.is_regular_file()) found.insert(fs::relative(entry.path(), kRoot).string());
      }
    }
    for (const auto& entry : fs::directory_iterator(kRoot)) {
      if (entry.is_regular_file()) found.insert(entry.path().filename().string());
    }
    return found;
  }();
  return all;
}

// A name may leave out the folders in front; `*` and `{a,b}` stand for what they do in a shell.
bool exists(const std::string& name) {
  std::string pattern = "(.*/)?";
  for (const char c : name) {
    switch (c) {
      case '*': pattern += "[^/]*"; break;
      case '{': pattern += "("; break;
      case '}': pattern += ")"; break;
      case ',': pattern += "|"; break;
      case '.': pattern += "\\."; break;
      default: pattern += c;
    }
  }
  const std::regex whole(pattern);
  return std::any_of(files().begin(), files().end(),
                     [&](const std::string& file) { return std::regex_match(file, whole); });
}

std::string without_code_blocks(const std::string& text) {
  std::istringstream lines(text);
  std::string prose;
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      code = !code;
    } else if (!code) {
      prose += line + '\n';
    }
  }
  return prose;
}

// As web pages of Git hosts make them.
std::set<std::string> anchors_of(const fs::path& page) {
  std::istringstream lines(without_code_blocks(read_file(page)));
  std::set<std::string> anchors;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(byte));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Pages, name_only_files_that_exist) {
  const std::regex quoted(
      R"re(`([\w./*{},-]+\.(cc|h|lua|md|py|sh|sql|txt|cmake|json|yaml|yml))`)re");
  std::size_t names = 0;
  for (const fs::path& page : pages()) {
    if (page == "CHANGELOG.md") continue;  // tells of files as they were
    const std::string text = without_code_blocks(read_file(kRoot / page));
    for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it) {
      const std::string name = (*it)[1];
      ++names;
      EXPECT_TRUE(kNotInTheTree.contains(name) || exists(name)) << page << " names " << name;
    }
  }
  EXPECT_GT(names, 80U) << "the pages are not read as they should be";
}

TEST(Pages, link_only_to_pages_and_headings_that_exist) {
  const std::regex link(R"re(\]\(([^)\s:]+)\))re");  // with a colon it leads elsewhere
  std::size_t links = 0;
  for (const fs::path& page : pages()) {
    const std::string text = without_code_blocks(read_file(kRoot / page));
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      const std::string target = (*it)[1];
      const auto hash = target.find('#');
      const std::string file = target.substr(0, hash);
      const fs::path meant =
          file.empty() ? kRoot / page : (kRoot / page).parent_path() / fs::path(file);
      ++links;
      EXPECT_TRUE(fs::exists(meant)) << page << " links to " << target;
      if (hash == std::string::npos || !fs::exists(meant)) continue;
      EXPECT_TRUE(anchors_of(meant).contains(target.substr(hash + 1)))
          << page << " links to " << target;
    }
  }
  EXPECT_GT(links, 50U) << "the pages are not read as they should be";
}

}  // namespace
}  // namespace baton::test
