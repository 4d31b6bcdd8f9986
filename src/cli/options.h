#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace baton::cli {

// Everything that a command line can say, and which command it is.
struct Arguments {
  Settings given;
  bool json = false;
  RunArguments run;
  ElectArguments elect;
  LeaderArguments leader;
  LockFindArguments find;
  LockShowArguments show;
  LockBreakArguments break_;
  LockStatsArguments stats;
  FenceArguments fence;
  StoreDoctorArguments doctor;
  PolicyArguments policy;
  JobArguments job;
  NodeArguments node;
  std::string shell;
  std::function<Result<int>(Context&)> command;
};

struct Parsed {
  std::string help;         // was asked for
  std::string usage_error;  // one line
};

// Fills `all`, which must outlive its command. Without help and error, the command may be called.
[[nodiscard]] Parsed parse(std::vector<std::string> words, Arguments& all);

}  // namespace baton::cli
