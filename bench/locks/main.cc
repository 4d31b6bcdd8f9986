// What locks cost, each row against a floor measured in the same run. harness/program.h says how it
// is called.

#include <cstdio>
#include <exception>

#include "harness/machine.h"
#include "harness/program.h"
#include "locks/rows.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

int run_rows(const std::vector<std::string>& words) {
  std::unique_ptr<Lab> lab;
  Program program{.name = "bench_locks"};
  program.begin = [&](const SliceOptions& options) -> Setting {
    lab = std::make_unique<Lab>(options);
    return {{"filesystem", filesystem_of(lab->directory().path())},
            {"PostgreSQL", Session(lab->admin_url()).ask("SHOW server_version")}};
  };
  const auto add = [&](const char* name, std::vector<Figure> (*measure)(Lab&)) {
    program.rows.push_back({name, [&lab, measure](const SliceOptions&) { return measure(*lab); }});
  };
  add("postgres-1", postgres_one_caller);
  add("postgres-64", postgres_many_callers);
  add("postgres-busy", postgres_busy);
  add("sqlite-1", sqlite_one_caller);
  add("sqlite-16", sqlite_many_callers);
  add("memory", memory_callers);
  add("metrics", metrics_cost);
  add("handover", handover);
  add("renewals", renewals);
  add("many-names", many_names);
  return run_program(program, words);
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using namespace baton::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "waiters") return run_waiters({words[1], words[2]});
    if (words.size() == 4 && words[0] == "holder") {
      return run_holder({words[1], words[2], words[3]});
    }
    return run_rows(words);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_locks: %s\n", problem.what());
    return 2;
  }
}
