// What the document platform does in a second. harness/program.h says how it is called.

#include "documents/rows.h"
#include "harness/machine.h"
#include "harness/program.h"

int main(int argc, char** argv) {
  using namespace baton::bench;
  std::unique_ptr<Lab> lab;
  Amounts amounts;
  Program program{
      .name = "bench_documents",
      .numbers = {{"--documents", &amounts.documents}, {"--seconds", &amounts.seconds}}};
  program.begin = [&](const SliceOptions& options) -> Setting {
    lab = std::make_unique<Lab>(options);
    return {{"filesystem", filesystem_of(lab->directory().path())}};
  };
  program.rows = {
      {"submit", [&](const SliceOptions&) { return submit(*lab, amounts); }},
      {"pipeline", [&](const SliceOptions&) { return pipeline(*lab, amounts); }},
  };
  return run_program(program, {argv + 1, argv + argc});
}
