#include "harness/program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <regex>

#include "harness/machine.h"

namespace baton::bench {
namespace {

struct Options {
  bool json = false;
  std::regex rows{""};
  SliceOptions slices;
};

int usage(const Program& program) {
  std::fprintf(stderr, "usage: %s [--json] [--rows REGEX]", program.name.c_str());
  for (const auto& [name, number] : program.numbers) {
    std::fprintf(stderr, " [%s N]", name.c_str());
  }
  std::fprintf(stderr, "%s\nrows:", program.numbers.empty() ? " [--slices N]" : "");
  for (const auto& row : program.rows) std::fprintf(stderr, " %s", row.name.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

bool parse(const Program& program, const std::vector<std::string>& words, Options& options) {
  auto numbers = program.numbers;
  if (numbers.empty()) numbers.emplace_back("--slices", &options.slices.slices);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    const auto number = std::find_if(numbers.begin(), numbers.end(),
                                     [&](const auto& entry) { return entry.first == words[i]; });
    if (words[i] == "--json") {
      options.json = true;
    } else if (words[i] == "--rows" && has_value) {
      options.rows = std::regex(words[++i]);
    } else if (number != numbers.end() && has_value) {
      *number->second = std::max(1, std::stoi(words[++i]));
    } else {
      return false;
    }
  }
  return true;
}

// A commit that no disk sees would flatter everybody. Unless somebody chose the place, take one on
// a disk.
void choose_directory() {
  if (std::getenv("BATON_TEST_TMP") != nullptr) return;
  if (filesystem_of(std::filesystem::temp_directory_path()) != "tmpfs") return;
  if (std::filesystem::exists("/var/tmp") && filesystem_of("/var/tmp") != "tmpfs") {
    setenv("BATON_TEST_TMP", "/var/tmp", 1);
  }
}

int measure(const Program& program, const Options& options) {
  choose_directory();
  Report report;
  report.setting = {{"machine", describe_machine()}};
  if (program.numbers.empty()) {
    report.setting.emplace_back("slices", std::to_string(options.slices.slices) + " of " +
                                              std::to_string(options.slices.slice.count()) +
                                              " ms, paired");
  }
  if (program.begin) {
    for (auto& line : program.begin(options.slices)) report.setting.push_back(std::move(line));
  }
  for (const auto& row : program.rows) {
    if (!std::regex_search(row.name, options.rows)) continue;
    std::fprintf(stderr, "measuring %s\n", row.name.c_str());
    for (Figure& figure : row.measure(options.slices)) report.figures.push_back(std::move(figure));
  }
  std::fputs((options.json ? as_json(report) : as_table(report)).c_str(), stdout);
  return report.all_met() ? 0 : 1;
}

}  // namespace

int run_program(const Program& program, const std::vector<std::string>& words) {
  try {
    Options options;
    return parse(program, words, options) ? measure(program, options) : usage(program);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), problem.what());
    return 2;
  }
}

}  // namespace baton::bench
