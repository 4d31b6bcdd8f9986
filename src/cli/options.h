#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "command_line/command.h"

namespace baton::cli {

// Everything that a command line can say, and which command it is.
struct Arguments {
  Settings given;
  bool json = false;
  RunArguments run;
  HoldArguments hold;
  ElectArguments elect;
  LeaderArguments leader;
  LockFindArguments find;
  LockShowArguments show;
  LockForgetArguments forget;
  LockBreakArguments break_;
  LockStatsArguments stats;
  FenceArguments fence;
  StoreMigrateArguments migrate;
  StoreDoctorArguments doctor;
  PolicyArguments policy;
  JobArguments job;
  NodeArguments node;
  PartitionArguments partition;
  EventArguments events;
  ProcessorArguments processor;
  BrokerArguments broker;
  RelayArguments relay;
  CronArguments cron;
  std::string shell;
  bool wants_help = false;  // of help_of
  std::vector<std::string> help_of;
  std::function<Result<int>(Context&)> command;
};

// Fills `all`, which must outlive its command. The command may be called if nothing is wrong and no
// help was asked for.
[[nodiscard]] command_line::Understood parse(std::vector<std::string> words, Arguments& all);

}  // namespace baton::cli
