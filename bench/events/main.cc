// What events cost, each row against a floor measured in the same run. harness/program.h says how
// it is called.

#include <cstdio>
#include <exception>

#include "events/rows.h"
#include "harness/machine.h"
#include "harness/program.h"

namespace baton::bench {
namespace {

int run_rows(const std::vector<std::string>& words) {
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
  add("relay-backlog", relay_backlog);
  add("relay-pinned", relay_pinned);
  add("relay-idle", relay_idle);
  add("add", outbox_add);
  add("consumer", consumer_rate);
  add("embedded-publish", embedded_publish);
  add("embedded-consumers", embedded_consumers);
  return run_program(program, words);
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using namespace baton::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "consumer") return run_consumer({words[1], words[2]});
    return run_rows(words);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_events: %s\n", problem.what());
    return 2;
  }
}
