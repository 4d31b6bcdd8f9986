#pragma once

// The jobs of a file in a scheduler. A new file changes what has changed in it, and nothing else:
// commands that run go on, and jobs that are the same keep their times.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "baton/scheduler.h"
#include "cli/cron/cron_file.h"

namespace baton::cli {

class JobSet {
 public:
  using MakeHandler = std::function<Handler(const CronJob&)>;

  JobSet(Scheduler& scheduler, MakeHandler make_handler)
      : scheduler_(scheduler), make_handler_(std::move(make_handler)) {}

  struct Changes {
    std::vector<std::string> added;
    std::vector<std::string> changed;
    std::vector<std::string> removed;
    std::vector<std::string> refused;  // by the scheduler, and why; as it was before
  };
  Changes apply(const std::vector<CronJob>& jobs);

  [[nodiscard]] std::size_t size() const { return sources_.size(); }

 private:
  Scheduler& scheduler_;
  MakeHandler make_handler_;
  std::map<std::string, std::string> sources_;  // by name
};

}  // namespace baton::cli
