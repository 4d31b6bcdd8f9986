#pragma once

#include "cli/cron/cron_file.h"
#include "cli/output.h"

namespace baton::cli {

// baton cron FILE --check: when each job is due next, and what this machine lacks for it. `node` as
// for why_not_here.
void show_cron_file(const Output& out, const std::vector<CronJob>& jobs, const std::string& node,
                    WallTime now);

}  // namespace baton::cli
