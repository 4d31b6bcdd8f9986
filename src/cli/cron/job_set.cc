#include "cli/cron/job_set.h"

#include <set>

namespace baton::cli {

JobSet::Changes JobSet::apply(const std::vector<CronJob>& jobs) {
  Changes changes;
  std::set<std::string> wanted;
  for (const CronJob& job : jobs) wanted.insert(job.name);
  for (auto it = sources_.begin(); it != sources_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    scheduler_.remove(it->first);
    changes.removed.push_back(it->first);
    it = sources_.erase(it);
  }
  for (const CronJob& job : jobs) {
    const auto there = sources_.find(job.name);
    if (there != sources_.end() && there->second == job.source) continue;
    const bool is_new = there == sources_.end();
    const auto done =
        is_new ? scheduler_.add(job.name, job.schedule, job.options, make_handler_(job))
               : scheduler_.replace(job.name, job.schedule, job.options, make_handler_(job));
    if (!done) {
      changes.refused.push_back(done.error().message);
      continue;
    }
    sources_[job.name] = job.source;
    (is_new ? changes.added : changes.changed).push_back(job.name);
  }
  return changes;
}

}  // namespace baton::cli
