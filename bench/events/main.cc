// What events cost, each row against a floor measured in the same run. harness/program.h says how
// it is called.

#include "events/rows.h"
#include "harness/machine.h"
#include "harness/program.h"

int main(int argc, char** argv) {
  using namespace baton::bench;
  std::unique_ptr<Lab> lab;
  Program program{.name = "bench_events"};
  program.begin = [&](const SliceOptions& options) -> Setting {
    lab = std::make_unique<Lab>(options);
    return {{"filesystem", filesystem_of(lab->directory().path())}};
  };
  const auto add = [&](const char* name, std::vector<Figure> (*measure)(Lab&)) {
    program.rows.push_back({name, [&lab, measure](const SliceOptions&) { return measure(*lab); }});
  };
  add("rabbitmq-publish", rabbitmq_publish);
  add("relay", relay_rate);
  return run_program(program, {argv + 1, argv + argc});
}
