#pragma once

// The file of `baton cron`, which is the same on every machine of a fleet:
//
//   defaults:                    # of all jobs that do not say otherwise
//     time-zone: Europe/Berlin
//   jobs:
//     import-orders:
//       every: 30s
//       command: [/usr/local/bin/import, --all]
//     nightly-report:
//       cron: 30 2 * * MON-FRI
//       command: ./report | mail -s report team     # text: run by /bin/sh -c
//       directory: /srv/reports
//
// docs/cron.md has all keys.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule.h"
#include "baton/scheduler.h"

namespace baton::cli {

inline constexpr std::size_t kMaxCronJobs = 1000;

// The command of a job.
struct CronCommand {
  std::vector<std::string> words;  // of a text: /bin/sh -c TEXT
  std::string directory;           // empty: baton's own
  std::map<std::string, std::string> environment;
  std::vector<std::string> pass_environment;  // variables of baton's own
  Millis timeout{0};                          // 0: none
  Millis grace{10'000};                       // from SIGTERM to SIGKILL
  int retries = 0;                            // within a fire
  Millis retry_after{1'000};                  // doubled with each
};

struct CronJob {
  std::string name;
  int line = 0;
  Schedule schedule;
  JobOptions options;
  CronCommand command;
  std::string source;  // two jobs of the same source are the same
};

// Why this machine does not run it; empty if it does. `node` is what the user calls this machine;
// empty if nobody has said.
[[nodiscard]] std::string why_not_here(const CronJob& job, const std::string& node);

// Ordered as written. Every error is one line, with its number.
[[nodiscard]] Result<std::vector<CronJob>> parse_cron_file(std::string_view yaml);

// The same of a file that only this user and root may write: who writes it runs commands as us.
[[nodiscard]] Result<std::vector<CronJob>> load_cron_file(const std::filesystem::path& path);

}  // namespace baton::cli
