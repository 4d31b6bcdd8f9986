#pragma once

// The handler of a job of `baton cron`: runs its command until that and all its processes have
// ended.

#include <string>
#include <vector>

#include "baton/scheduler.h"
#include "cli/cron/cron_file.h"
#include "cli/cron/log_queue.h"
#include "cli/cron/output_capture.h"
#include "cli/cron/spawner.h"

namespace baton::cli {

// Shared by all commands; outlives every fire.
struct CommandHost {
  Spawner& spawner;
  OutputCapture& output;
  LogQueue& log;
  std::string store;  // its URL, for how much time a lost lock gives
};

// Throws what is wrong with the run, for the scheduler: then the fire has failed.
void run_command(const CronCommand& command, OnCrash on_crash, const CommandHost& host, Run& run);

// The variables that every command gets of ours: where programs and the user's files are, and the
// language. Not the others: they may hold secrets that it has no business with.
[[nodiscard]] std::vector<std::string> command_environment(const CronCommand& command);

}  // namespace baton::cli
