#pragma once

#include <string>
#include <vector>

#include "apps/warehouse/config.h"
#include "apps/warehouse/counter.h"
#include "apps/warehouse/generator.h"
#include "apps/warehouse/node.h"

namespace baton::warehouse {

struct Options {
  enum class Command { node, count, generate, verify } command = Command::node;
  Config config;
  NodeSettings node;
  CounterSettings counter;
  GeneratorSettings generator;
  Millis verify_wait{0};
  bool json = false;
};

struct Parsed {
  Options options;
  std::string help;   // to be printed instead of doing anything
  std::string wrong;  // what is wrong with the command line or the configuration
};

[[nodiscard]] Parsed parse_command_line(const std::vector<std::string>& words);

}  // namespace baton::warehouse
