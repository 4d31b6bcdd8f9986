// Files of `baton cron`.

#include "cli/cron/cron_file.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  const auto jobs = baton::cli::parse_cron_file(baton::fuzz::text_of(data, size));
  if (!jobs) {
    promise(jobs.error().message.find('\n') == std::string::npos, "a refusal is one line");
    return 0;
  }
  promise(jobs->size() <= baton::cli::kMaxCronJobs, "there are no more jobs than may be");
  for (const baton::cli::CronJob& job : *jobs) {
    promise(!job.command.words.empty() && !job.command.words.front().empty(),
            "a job has a program to run");
    for (const std::string& word : job.command.words) {
      promise(word.find('\0') == std::string::npos, "no argument is cut off by a zero byte");
    }
    promise(job.options.keep_runs <= baton::kMaxKeptRuns, "no more runs are kept than fit");
    (void)baton::cli::why_not_here(job, "node-a");
  }
  return 0;
}
