// How evenly, how promptly and at what cost a fleet runs its jobs. harness/program.h says how it is
// called.

#include "harness/program.h"
#include "schedule/rows.h"

int main(int argc, char** argv) {
  using namespace baton::bench;
  RowOptions options;
  const auto row = [&options](std::string name, std::vector<Figure> (*measure)(const RowOptions&)) {
    return Program::Row{std::move(name),
                        [&options, measure](const SliceOptions&) { return measure(options); }};
  };
  const Program program{
      .name = "bench_schedule",
      .rows = {row("shares-2x3", shares_two_nodes), row("shares-3x3", shares_three_nodes),
               row("shares-3x10", shares_ten_types), row("shares-change", shares_after_a_change),
               row("overhead", overhead), row("take-over", take_over), row("many-jobs", many_jobs)},
      .numbers = {{"--runs", &options.runs},
                  {"--at-a-time", &options.at_a_time},
                  {"--cycles", &options.cycles},
                  {"--seconds", &options.seconds},
                  {"--jobs", &options.jobs},
                  {"--nodes", &options.nodes}}};
  return run_program(program, {argv + 1, argv + argc});
}
