// What locks cost, each row against a floor measured in the same run.
//
//   bench_locks [--json] [--rows REGEX] [--slices N]
//
// Exits with 1 if a target is missed, with 2 if something could not be measured.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <regex>

#include "harness/machine.h"
#include "locks/rows.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

struct Options {
  bool json = false;
  std::regex rows{""};
  LabOptions lab;
};

const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows{{"postgres-1", postgres_one_caller},
                                     {"postgres-64", postgres_many_callers},
                                     {"sqlite-1", sqlite_one_caller},
                                     {"sqlite-16", sqlite_many_callers},
                                     {"memory", memory_callers},
                                     {"metrics", metrics_cost},
                                     {"handover", handover},
                                     {"renewals", renewals},
                                     {"many-names", many_names}};
  return rows;
}

int usage() {
  std::fprintf(stderr, "usage: bench_locks [--json] [--rows REGEX] [--slices N]\nrows:");
  for (const Row& row : all_rows()) std::fprintf(stderr, " %s", row.name.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

bool parse(const std::vector<std::string>& words, Options& options) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--json") {
      options.json = true;
    } else if (words[i] == "--rows" && has_value) {
      options.rows = std::regex(words[++i]);
    } else if (words[i] == "--slices" && has_value) {
      options.lab.slices = std::max(1, std::stoi(words[++i]));
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

int run(const Options& options) {
  choose_directory();
  Lab lab(options.lab);
  Report report;
  report.setting = {{"machine", describe_machine()},
                    {"filesystem", filesystem_of(lab.directory().path())},
                    {"PostgreSQL", Session(lab.admin_url()).ask("SHOW server_version")},
                    {"slices", std::to_string(options.lab.slices) + " of " +
                                   std::to_string(options.lab.slice.count()) + " ms, paired"}};
  for (const Row& row : all_rows()) {
    if (!std::regex_search(row.name, options.rows)) continue;
    say("measuring " + row.name);
    for (Figure& figure : row.measure(lab)) report.figures.push_back(std::move(figure));
  }
  std::fputs((options.json ? as_json(report) : as_table(report)).c_str(), stdout);
  return report.all_met() ? 0 : 1;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using namespace baton::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "waiters") return run_waiters({words[1], words[2]});
    if (words.size() == 4 && words[0] == "holder")
      return run_holder({words[1], words[2], words[3]});
    Options options;
    return parse(words, options) ? run(options) : usage();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_locks: %s\n", problem.what());
    return 2;
  }
}
