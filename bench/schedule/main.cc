// How evenly, how promptly and at what cost a fleet runs its jobs.
//
//   bench_schedule [--json] [--rows REGEX] [--runs N] [--cycles N] [--seconds N] [--jobs N]
//                  [--nodes N]
//
// Exits with 1 if a target is missed, with 2 if something could not be measured.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <regex>

#include "harness/machine.h"
#include "schedule/rows.h"

namespace baton::bench {
namespace {

struct Options {
  bool json = false;
  std::regex rows{""};
  RowOptions row;
};

const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows{
      {"shares-2x3", shares_two_nodes},
      {"shares-3x3", shares_three_nodes},
      {"shares-3x10", shares_ten_types},
      {"shares-change", shares_after_a_change},
      {"overhead", overhead},
      {"take-over", take_over},
      {"many-jobs", many_jobs},
  };
  return rows;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench_schedule [--json] [--rows REGEX] [--runs N] [--cycles N] "
               "[--seconds N] [--jobs N] [--nodes N]\nrows:");
  for (const Row& row : all_rows()) std::fprintf(stderr, " %s", row.name.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

bool parse(const std::vector<std::string>& words, Options& options) {
  const std::vector<std::pair<std::string, int*>> numbers = {{"--runs", &options.row.runs},
                                                             {"--cycles", &options.row.cycles},
                                                             {"--seconds", &options.row.seconds},
                                                             {"--jobs", &options.row.jobs},
                                                             {"--nodes", &options.row.nodes}};
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

int run(const Options& options) {
  Report report;
  report.setting = {{"machine", describe_machine()}};
  for (const Row& row : all_rows()) {
    if (!std::regex_search(row.name, options.rows)) continue;
    std::fprintf(stderr, "measuring %s\n", row.name.c_str());
    for (Figure& figure : row.measure(options.row)) report.figures.push_back(std::move(figure));
  }
  std::fputs((options.json ? as_json(report) : as_table(report)).c_str(), stdout);
  return report.all_met() ? 0 : 1;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using namespace baton::bench;
  try {
    Options options;
    return parse({argv + 1, argv + argc}, options) ? run(options) : usage();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_schedule: %s\n", problem.what());
    return 2;
  }
}
